"""Drawn diffs: signs and numbers of both sides, folded lines, moved blocks, widths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.sessions.journals import FAST_SOURCE, RIGHT_SOURCE
from tui.cockpit.draw.diffing import LONGEST_LINES, DiffView, compare, side_by_side, unified
from tui.cockpit.draw.highlighting import LONGEST_COLOURED, highlighted
from tui.cockpit.draw.lines import cells, clean, plain


def test_moved_line_has_both_its_numbers() -> None:
    block = "def helper(x):\n    y = x + 1\n    return y / 2\n"
    old, new = block + RIGHT_SOURCE, RIGHT_SOURCE + block
    text = [plain(line) for line in unified(compare(old, new), 100, DiffView()).lines]
    assert text[0] == "...     3 lines moved to line 25"
    assert " 1 25 > def helper(x):" in text


@pytest.mark.parametrize("width", [40, 79])
def test_unified_diff_is_folded_at_its_width(width: int) -> None:
    both = compare(RIGHT_SOURCE, FAST_SOURCE)
    text = [plain(line) for line in unified(both, width, DiffView()).lines]
    assert max(len(line) for line in text) <= width
    assert "num_warps=8)" in "".join(line[8:] for line in text)


@pytest.mark.parametrize("width", [40, 81, 160])
def test_side_by_side_diff_fits_its_width(width: int) -> None:
    old, new = RIGHT_SOURCE, FAST_SOURCE.replace("eight waves", "\u516b\u500b\u306e\u6ce2" * 10)
    drawn = side_by_side(compare(old, new), width, DiffView())
    assert all(cells(line) <= width for line in drawn.lines)
    assert any("…" in plain(line) for line in drawn.lines), "a cut line says so"


def test_opened_folds_give_all_lines_of_the_new_source() -> None:
    block = "def helper(x):\n    y = x + 1\n    return y / 2\n"
    old, new = block + RIGHT_SOURCE, FAST_SOURCE + block
    both = compare(old, new)
    everything = DiffView(opened=frozenset(range(len(both.diff.hunks) + 1)))
    drawn = unified(both, 200, everything)
    assert not drawn.folds
    shown = [plain(line) for line in drawn.lines]
    numbers = [int(line[3:5]) for line in shown if line[3:5].strip().isdigit() and "..." not in line]
    assert numbers == list(range(1, len(new.splitlines()) + 1))


def test_too_long_sources_are_not_compare() -> None:
    assert compare("x = 1\n" * (LONGEST_LINES + 1), "x = 2\n") is None


@given(st.text(max_size=300))
def test_highlighting_changes_no_character(source: str) -> None:
    assert "\n".join(plain(line) for line in highlighted(source)) == clean(source).removesuffix("\n")


def test_very_long_line_has_colours_at_its_start_only() -> None:
    source = f"values = [{', '.join(map(str, range(20_000)))}]\ny = 1\n"
    long, short = highlighted(source)
    assert "\n".join(map(plain, (long, short))) == source.removesuffix("\n")
    coloured = [span for span in long if span.style]
    assert coloured
    assert len(plain(long[:-1])) < LONGEST_COLOURED + 100, "a paint must not draw thousands of spans"
    assert short[-1].style == "code-number"
