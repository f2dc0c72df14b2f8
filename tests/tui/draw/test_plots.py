"""Protects the plots of the terminal: honest scales, words instead of an empty plot, ASCII alone where it is asked for."""

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
    below, above = (plain(bar) for bar in plots.share_bars(
        [plots.ShareBar("A", 0.5, 0.99), plots.ShareBar("B", 0.5, 1.2)], 60, ascii=True
    ))  # fmt: skip
    assert below.index("|") == above.index("|")
    assert below.index("#") < below.index("|")
    assert above.index("#") > above.index("|")


def test_intervals_share_one_scale_that_says_it_does_not_begin_at_0() -> None:
    first, second, lost, _, axis = map(
        plain, plots.interval_rows(TIMES, 60, ascii=True, axis="us", label=str)
    )
    assert first.index("*") < second.index("*")
    assert second.index("|") < second.index("*") < second.rindex("|")
    assert lost.split() == ["GPU7", "hang"]
    assert "not from 0" in axis


def test_plots_without_data_are_words() -> None:
    [lost] = plots.interval_rows(TIMES[2:], 60, ascii=True, axis="us", label=str)
    assert plain(lost).split() == ["GPU7", "hang"]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1.27, 1.31), (3, 4000)])
def test_round_values_are_few_and_within_the_scale(low: float, high: float) -> None:
    values = plots.round_values(low, high, 6)
    assert 1 <= len(values) <= 6
    assert low <= min(values) <= max(values) <= high


def test_equal_values_still_have_a_scale() -> None:
    first, *_ = plots.interval_rows([plots.Interval("a", 5.0)], 60, ascii=True, axis="us", label=str)
    assert "*" in plain(first)


def test_a_plot_is_not_wider_than_asked_for() -> None:
    for width in (48, 60, 100):
        lines = plots.interval_rows(TIMES, width, ascii=False, axis="us", label=str)
        assert max(map(cells, lines)) <= width
