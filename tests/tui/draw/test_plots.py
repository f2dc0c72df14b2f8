"""Protects the plots of the terminal: honest scales, words instead of an empty plot."""

from __future__ import annotations

import pytest

from tui.cockpit.draw import plots
from tui.cockpit.draw.lines import cells, plain

TIMES = [
    plots.Interval("GPU0", 131.0, 130.5, 131.9, "131.0"),
    plots.Interval("GPU5", 148.8, 147.0, 152.0, "148.8!"),
    plots.Interval("GPU7", words="hang"),
]


def test_a_share_bar_puts_the_roof_at_100_percent_and_a_higher_share_behind_it() -> None:
    bars = [plots.ShareBar("A", 0.5, 0.99), plots.ShareBar("B", 0.5, 1.2)]
    below, above = map(plain, plots.share_bars(bars, 60))
    assert below.index("│") == above.index("│")
    assert below.index("#") < below.index("│")
    assert above.index("#") > above.index("│")


def test_intervals_share_one_scale_that_says_it_does_not_begin_at_0() -> None:
    first, second, lost, _, axis = map(plain, plots.interval_rows(TIMES, 60, axis="us", label=str))
    assert first.index(plots.POINT) < second.index(plots.POINT)
    assert second.index("├") < second.index(plots.POINT) < second.index("┤")
    assert lost.split() == ["GPU7", "hang"]
    assert "not from 0" in axis


def test_plots_without_data_are_words() -> None:
    [lost] = plots.interval_rows(TIMES[2:], 60, axis="us", label=str)
    assert plain(lost).split() == ["GPU7", "hang"]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1.27, 1.31), (3, 4000)])
def test_round_values_are_few_and_within_the_scale(low: float, high: float) -> None:
    values = plots.round_values(low, high, 6)
    assert 1 <= len(values) <= 6
    assert low <= min(values) <= max(values) <= high


def test_equal_values_still_have_a_scale() -> None:
    first, *_ = plots.interval_rows([plots.Interval("a", 5.0)], 60, axis="us", label=str)
    assert plots.POINT in plain(first)


def test_a_plot_is_not_wider_than_asked_for() -> None:
    for width in (48, 60, 100):
        lines = plots.interval_rows(TIMES, width, axis="us", label=str)
        assert max(map(cells, lines)) <= width


def test_best_line_rises_at_each_better_value_and_names_it() -> None:
    moments = [
        plots.Moment(0.2, 1.5, "#1/1 1.50x", is_best=True),
        plots.Moment(0.5, 1.2, "#1/2 1.20x"),
        plots.Moment(0.8, 3.0, "#1/3 3.00x", is_best=True),
    ]
    lines = list(map(plain, plots.best_line(moments, 60, 7)))
    assert len(lines) == 7
    assert max(map(len, lines)) <= 60
    assert lines[0].startswith("3.00x")
    assert lines[6].startswith("1.20x")
    (first,) = [line for line in lines if "#1/1 1.50x" in line]
    assert "#1/3 3.00x" in lines[0]
    assert lines[0].index(plots.POINT) > first.index(plots.POINT), "later is to the right"
    assert not any("1.20x" in line[6:] for line in lines), "a value below the best is a dot without words"
