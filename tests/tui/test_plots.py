"""Protects the plots of the terminal: honest scales, words instead of an empty plot, ASCII alone where it is asked for."""

from __future__ import annotations

import pytest

from tui.cockpit.draw import plots
from tui.cockpit.draw.lines import cells, plain
from tui.cockpit.draw.plots.axes import Scale, covering
from tui.cockpit.draw.plots.canvas import Canvas

TIMES = [
    plots.Interval("GPU0", 131.0, 130.5, 131.9, "131.0"),
    plots.Interval("GPU5", 148.8, 147.0, 152.0, "148.8!"),
    plots.Interval("GPU7", words="hang"),
]
ATTEMPTS = [
    plots.Point(1, 1.0, "C", low=0.98, high=1.02),
    plots.Point(2, None, "W", "bad"),
    plots.Point(3, 1.84, "#", "good", 1.79, 1.88),
]
CASES = [plots.Point(0.6, 2.5e12, "A"), plots.Point(100, 2e14, "B")]


def text(lines: list[tuple[object, ...]]) -> str:
    return "\n".join(plain(line) for line in lines)  # type: ignore[arg-type]


def everything(*, ascii: bool) -> str:
    lines = [
        *plots.share_bars([plots.Bar("A", 0.5, 1.2)], 70, ascii=ascii),
        *plots.interval_rows(TIMES, 60, ascii=ascii, axis="us", label=str),
        *plots.by_number(ATTEMPTS, 60, 12, ascii=ascii, y_title="x", x_title="n", reference=1.0, empty=""),
        *plots.roofline(CASES, 60, 12, ascii=ascii, bytes_per_s=4e12, flops_per_s=5e14, empty=""),
        *plots.time_bars([("partial", 3.0), ("combine", 1.0)], 60, ascii=ascii),
    ]
    return text(lines)


def test_ascii_plots_have_no_other_characters() -> None:
    assert everything(ascii=True).isascii()
    assert not everything(ascii=False).isascii()


def test_a_share_bar_puts_the_roof_at_100_percent_and_a_higher_share_behind_it() -> None:
    below, above = (plain(bar) for bar in plots.share_bars(
        [plots.Bar("A", 0.5, 0.99), plots.Bar("B", 0.5, 1.2)], 60, ascii=True
    ))  # fmt: skip
    assert below.index("|") == above.index("|")
    assert below.index("#") < below.index("|")
    assert above.index("#") > above.index("|")


def test_a_share_that_is_not_known_is_words_and_no_bar() -> None:
    (bar,) = plots.share_bars([plots.Bar("E", None, None, words="launch")], 60, ascii=True)
    assert plain(bar).split() == ["E", "launch"]


def test_intervals_share_one_scale_that_says_it_does_not_begin_at_0() -> None:
    first, second, lost, _, axis = map(
        plain, plots.interval_rows(TIMES, 60, ascii=True, axis="us", label=str)
    )
    assert first.index("*") < second.index("*")
    assert second.index("|") < second.index("*") < second.rindex("|")
    assert lost.split() == ["GPU7", "hang"]
    assert "not from 0" in axis


def test_an_attempt_without_a_value_stands_below_the_axis() -> None:
    drawn = plots.by_number(
        ATTEMPTS, 60, 12, ascii=True, y_title="speedup", x_title="attempt", reference=1.0, empty=""
    )
    *plot, numbers, letters, title = map(plain, drawn)
    assert letters.split() == ["W"]
    assert numbers.index("2") == letters.index("W")
    assert not any("W" in row for row in plot)
    assert title.strip() == "attempt"


def test_plots_without_data_are_words() -> None:
    words = "nothing yet"
    empty = plots.by_number([], 60, 12, ascii=True, y_title="", x_title="", empty=words)
    assert text(empty) == words
    flat = plots.roofline([plots.Point(0, 1e9, "A")], 60, 12, ascii=True, bytes_per_s=1e12, flops_per_s=None, empty=words)  # fmt: skip
    assert text(flat) == words
    assert plots.time_bars([], 60, ascii=True) == []


def test_a_point_at_the_roof_lies_on_the_line_of_the_roof() -> None:
    at_roof = [plots.Point(1.0, 4e12, "A")]
    lines = plots.roofline(at_roof, 60, 12, ascii=True, bytes_per_s=4e12, flops_per_s=None, empty="")
    rows = list(map(plain, lines))
    place = next(place for place, row in enumerate(rows) if "A" in row)
    assert ".A" in rows[place]
    assert rows[place - 1].index(".") - rows[place].index("A") in (0, 1)


def test_points_in_one_cell_show_that_there_are_several() -> None:
    canvas = Canvas(10, 3, ascii=True)
    canvas.mark(0.5, 0.5, "A")
    canvas.mark(0.5, 0.5, "B")
    assert "*" in text(canvas.lines())


@pytest.mark.parametrize("scale", [Scale(0, 1), Scale(1.27, 1.31), Scale(3, 4000), Scale(0.2, 900, log=True)])
def test_ticks_are_few_and_within_the_scale(scale: Scale) -> None:
    ticks = scale.ticks(6)
    assert 1 <= len(ticks) <= 6
    assert all(-1e-9 <= scale.share(tick) <= 1 + 1e-9 for tick in ticks)


def test_equal_values_still_have_a_scale() -> None:
    scale = covering([5.0, 5.0])
    assert scale.low < 5.0 < scale.high


def test_a_plot_is_not_wider_than_asked_for() -> None:
    for width in (48, 60, 100):
        lines = plots.interval_rows(TIMES, width, ascii=False, axis="us", label=str)
        lines += plots.by_number(ATTEMPTS, width, 10, ascii=False, y_title="x", x_title="n", empty="")
        assert max(map(cells, lines)) <= width
