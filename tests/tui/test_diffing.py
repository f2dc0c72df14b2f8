"""Diffs: complete and exact, because the new source follows from the old source and the diff."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.journals import FAST_SOURCE, RIGHT_SOURCE
from tui.cockpit.diffing import LONGEST_LINES, Change, Gap, compare, side_by_side, unified
from tui.cockpit.highlighting import highlighted
from tui.cockpit.lines import cells, clean, plain

SOURCES = st.lists(
    st.sampled_from(["x = 1", "y = x + 1", "return y", "", "    z = tl.load(p)"]), max_size=30
).map("\n".join)


def lines_of(source: str) -> list[str]:
    return [plain(line) for line in highlighted(source)]


@given(SOURCES, SOURCES)
def test_new_source_follows_from_the_old_source_and_the_diff(old: str, new: str) -> None:
    comparison = compare(old, new)
    assert comparison is not None
    before, after = lines_of(old), lines_of(new)
    rebuilt: list[str] = []
    old_line = 0
    for row in comparison.rows:
        if isinstance(row, Gap):
            rebuilt += before[old_line : old_line + row.lines]
            old_line += row.lines
            continue
        if row.new is not None:
            rebuilt.append(after[row.new])
        if row.old is not None:
            assert row.old == old_line
            old_line += 1
    if comparison.rows:
        assert rebuilt == after
        assert old_line == len(before)
    else:
        assert before == after
    assert comparison.added - comparison.removed == len(after) - len(before)


@given(SOURCES, SOURCES)
def test_marks_are_within_their_lines(old: str, new: str) -> None:
    comparison = compare(old, new)
    assert comparison is not None
    for row in comparison.rows:
        if isinstance(row, Change) and row.new is not None:
            assert all(0 <= a < b <= len(lines_of(new)[row.new]) for a, b in row.new_marks)


def test_unified_diff_marks_sides_with_signs() -> None:
    comparison = compare(RIGHT_SOURCE, FAST_SOURCE)
    assert comparison is not None
    text = [plain(line) for line in unified(RIGHT_SOURCE, FAST_SOURCE, comparison)]
    assert sum(" + " in line[:9] for line in text) == comparison.added == 3
    assert sum(" - " in line[:9] for line in text) == comparison.removed == 2
    assert any("same lines" in line for line in text)


@pytest.mark.parametrize("width", [40, 81, 160])
def test_side_by_side_diff_fits_its_width(width: int) -> None:
    comparison = compare(RIGHT_SOURCE, FAST_SOURCE)
    assert comparison is not None
    assert all(cells(line) <= width for line in side_by_side(RIGHT_SOURCE, FAST_SOURCE, comparison, width))


def test_too_long_sources_are_not_compared() -> None:
    assert compare("x = 1\n" * (LONGEST_LINES + 1), "x = 2\n") is None


@given(st.text(max_size=300))
def test_highlighting_changes_no_character(source: str) -> None:
    assert "\n".join(plain(line) for line in highlighted(source)) == clean(source).removesuffix("\n")
