"""Styled lines and tables: no control characters, no line wider than its limit, no lost text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.wire.limits import memory_words
from tui.cockpit.draw.grid import heading, places, row_line
from tui.cockpit.draw.lines import Span, cells, cut, fit, plain, shorten, wrap, wrap_paragraph, wrap_phrases
from tui.facts import vocabulary
from tui.facts.tables import GAP, Cell, Column, Row

TEXT = st.text(
    alphabet=st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Mn", "Me", "Cf")), max_size=200
)


@given(TEXT, st.integers(4, 40))
def test_wrapped_text_fits_and_keeps_every_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(TEXT, st.integers(1, 30))
def test_cell_is_exactly_as_wide_as_its_column(text: str, width: int) -> None:
    assert cell_len(fit(text, width)) == width
    assert cell_len(fit(text, width, right=True)) == width


@given(TEXT, st.integers(2, 30))
def test_cut_loses_no_text(text: str, width: int) -> None:
    head, tail = cut(text, width)
    assert head + tail == text
    assert cell_len(head) <= width or len(head) == 1


def test_wrapped_code_keeps_its_indentation() -> None:
    assert wrap_paragraph("    x = tl.load(p)", 40) == ["    x = tl.load(p)"]


COLUMNS = (
    Column("name", 6, 12),
    Column("rare", 8, 8, drop=2),
    Column("count", 5, 5, right=True),
    Column("rarer", 8, 8, drop=3),
)
ROWS = [Row("a", (Cell("softmax#1"), Cell("x"), Cell("12"), Cell("y")))]


def titles(width: int) -> list[str]:
    return plain(heading(COLUMNS, places(COLUMNS, ROWS, width))).split()


def test_columns_are_dropped_in_their_order() -> None:
    name = len("softmax#1")
    everything = name + 8 + 5 + 8 + 3 * GAP
    assert titles(everything) == ["name", "rare", "count", "rarer"]
    assert titles(everything - 1) == ["name", "rare", "count"]
    assert titles(name + 5 + GAP) == ["name", "count"]
    assert titles(6 + 5 + GAP) == ["name", "count"], "a name is shortened if no other column can be dropped"


def test_column_of_unknown_values_is_hidden() -> None:
    columns = (Column("name", 6, 12), Column("watts", 6, 6, if_known=True))
    unknown, measured = Row("a", (Cell("a"), Cell("-"))), Row("b", (Cell("b"), Cell("300 W")))
    assert plain(heading(columns, places(columns, [unknown], 40))).split() == ["name"]
    assert plain(heading(columns, places(columns, [unknown, measured], 40))).split() == ["name", "watts"]


@given(st.integers(0, 60))
def test_row_is_never_wider_than_its_table(width: int) -> None:
    placed = places(COLUMNS, ROWS, width)
    assert cells(row_line(COLUMNS, placed, ROWS[0])) <= max(width, 0)


@given(st.text(alphabet="ab_7é界", max_size=80), st.integers(5, 40))
@example("界77", 3)
def test_shortened_name_keeps_both_ends(text: str, width: int) -> None:
    short = shorten(text, width)
    assert cell_len(short) <= width
    assert width < 5 or short == text or (short[0] == text[0] and short[-1] == text[-1])


@pytest.mark.parametrize(
    ("value", "words"), [(0, "0"), (950, "950"), (1840, "1.84k"), (12_345, "12.3k"), (4_560_000, "4.56M")]
)
def test_counts_are_short(value: int, words: str) -> None:
    assert vocabulary.count(value) == words


def test_every_verdict_has_its_own_letter() -> None:
    assert len(set(vocabulary.LETTERS.values())) == len(vocabulary.LETTERS) == len(vocabulary.Verdict)


def test_unknown_is_never_zero() -> None:
    assert vocabulary.money(None) == vocabulary.seconds(None) == memory_words(None) == "-"
    assert vocabulary.tokens(0, 0) == "-"
    assert vocabulary.money(0.0) == "$0.00"


def test_phrases_wrap_between_them_and_long_ones_at_spaces() -> None:
    phrases = (Span("correct", "good"), Span("on 5 of 6 cases; too short:"), Span("one row", "dim"))
    rows = wrap_phrases(phrases, 18, Span(" · ", "dim"))
    assert [plain(row) for row in rows] == ["correct", "on 5 of 6 cases;", "too short:", "one row"]
    assert rows[0] == (Span("correct", "good"),)
    assert rows[-1] == (Span("one row", "dim"),)
