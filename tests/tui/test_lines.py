"""Styled lines and tables as plain data: nothing dangerous, nothing wider than asked for, nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.cockpit import wording
from tui.cockpit.grid import GAP, Cell, Column, Row, heading, places, row_line
from tui.cockpit.lines import Span, cells, clean, cut, fit, plain, shorten, wrap, wrap_paragraph

TEXT = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Mn", "Me", "Cf")), max_size=200
)


@given(TEXT, st.integers(4, 40))
def test_wrapped_text_fits_and_keeps_every_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(TEXT, st.integers(1, 30))
def test_a_cell_is_exactly_as_wide_as_its_column(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(fit(text, width, right=True)) == width


@given(TEXT, st.integers(2, 30))
def test_cutting_loses_nothing(text: str, width: int) -> None:
    head, tail = cut(text, width)
    assert head + tail == text
    assert cell_len(head) <= width or len(head) == 1


def test_code_keeps_its_indentation_where_it_fits() -> None:
    assert wrap_paragraph("    x = tl.load(p)", 40) == ["    x = tl.load(p)"]


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\x9b31m", "a\rb\x07", "\u202eright to left", "\u2066x"])
def test_text_of_a_candidate_cannot_steer_the_terminal(hostile: str) -> None:
    shown = clean(hostile)
    assert not any(ord(line) < 32 and line != "\n" for line in shown)
    assert "\x9b" not in shown
    assert "\u202e" not in shown
    assert "\u2066" not in shown


COLUMNS = (
    Column("name", 6, 12),
    Column("rare", 8, 8, drop=2),
    Column("count", 5, 5, right=True),
    Column("rarer", 8, 8, drop=3),
)
ROWS = [Row("a", (Cell("softmax#1"), Cell("x"), Cell("12"), Cell("y")))]


def titles(width: int) -> list[str]:
    return plain(heading(COLUMNS, places(COLUMNS, ROWS, width))).split()


def test_columns_go_in_their_order_when_space_is_short() -> None:
    name = len("softmax#1")
    everything = name + 8 + 5 + 8 + 3 * GAP
    assert titles(everything) == ["name", "rare", "count", "rarer"]
    assert titles(everything - 1) == ["name", "rare", "count"]
    assert titles(name + 5 + GAP) == ["name", "count"]
    assert titles(6 + 5 + GAP) == ["name", "count"], "a name is cut when nothing else can go"


def test_a_column_that_nobody_knows_anything_for_takes_no_room() -> None:
    columns = (Column("name", 6, 12), Column("watts", 6, 6, if_known=True))
    unknown, known = Row("a", (Cell("a"), Cell("-"))), Row("b", (Cell("b"), Cell("300 W")))
    assert plain(heading(columns, places(columns, [unknown], 40))).split() == ["name"]
    assert plain(heading(columns, places(columns, [unknown, known], 40))).split() == ["name", "watts"]


@given(st.integers(0, 60))
def test_a_row_is_never_wider_than_its_table(width: int) -> None:
    placed = places(COLUMNS, ROWS, width)
    assert cells(row_line(COLUMNS, placed, ROWS[0])) <= max(width, 0)


@given(st.text(alphabet="ab_7é界", max_size=80), st.integers(5, 40))
@example("界77", 3)
def test_a_shortened_name_fits_and_keeps_both_its_ends(text: str, width: int) -> None:
    short = shorten(text, width)
    assert cell_len(short) <= width
    assert width < 5 or short == text or (short[0] == text[0] and short[-1] == text[-1])


def test_numbers_stand_on_the_right() -> None:
    placed = places(COLUMNS, ROWS, 60)
    assert "   12" in plain(row_line(COLUMNS, placed, ROWS[0]))


@pytest.mark.parametrize(
    ("value", "said"), [(0, "0"), (950, "950"), (1840, "1.84k"), (12_345, "12.3k"), (4_560_000, "4.56M")]
)
def test_counts_are_short(value: int, said: str) -> None:
    assert wording.count(value) == said


@pytest.mark.parametrize(
    ("value", "said"),
    [(4.213, "4.21 us"), (38, "38 us"), (412.6, "413 us"), (1250.0, "1.25 ms"), (2.5e6, "2.5 s")],
)
def test_latencies_have_three_digits(value: float, said: str) -> None:
    assert wording.microseconds(value) == said


def test_every_verdict_has_a_letter_of_its_own() -> None:
    assert len(set(wording.LETTERS.values())) == len(wording.LETTERS) == len(wording.Verdict)


def test_unknown_is_never_zero() -> None:
    assert wording.cost(None) == wording.seconds(None) == wording.size(None) == "-"
    assert wording.tokens(0, 0) == "-"
    assert wording.cost(0.0) == "$0.00"


def test_spans_of_one_style_are_plain_text() -> None:
    assert plain((Span("a", "good"), Span("b"))) == "ab"
