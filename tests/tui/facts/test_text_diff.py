"""Diffs: complete, and paired by content; moved blocks are recognised."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.facts.text_diff import (
    CONTEXT,
    LineKind,
    compare_lines,
    count_changes,
    diff_words,
    unified_lines,
)

TEXTS = st.lists(
    st.sampled_from(
        ["x = tl.load(p)", "y = x + 1", "y = x + 2", "return y", "for i in range(n):", "", ")", "é = 1"]
    ),
    max_size=30,
)


@given(TEXTS, TEXTS)
def test_new_text_follows_from_the_old_text_and_the_diff(old: list[str], new: list[str]) -> None:
    rebuilt: list[str] = []
    used: list[int] = []
    for row in compare_lines(old, new).rows:
        if row.kind in (LineKind.SAME, LineKind.MOVED_HERE) and row.old is not None:
            rebuilt.append(old[row.old])
        elif row.kind in (LineKind.ADDED, LineKind.CHANGED) and row.new is not None:
            rebuilt.append(new[row.new])
        if row.kind not in (LineKind.ADDED, LineKind.MOVED_HERE) and row.old is not None:
            used.append(row.old)
    assert rebuilt == new
    assert used == list(range(len(old)))


@given(TEXTS, TEXTS)
def test_hunks_and_folds_have_every_row_once_and_folds_have_no_change(old: list[str], new: list[str]) -> None:
    diff = compare_lines(old, new)
    assert [row for part in diff.parts() for rows in part for row in rows] == list(diff.rows)
    folds = [folded for folded, _ in diff.parts()]
    assert all(row.kind is LineKind.SAME for folded in folds for row in folded)
    assert not diff.hunks or 1 not in map(len, folds)


@given(TEXTS, TEXTS)
def test_unified_diff_leads_to_the_new_text_and_has_the_size_of_every_other_surface(
    old: list[str], new: list[str]
) -> None:
    lines = unified_lines(old, new, "a", "b")
    rebuilt, at = list[str](), 0
    for line in lines[2:]:
        if line.startswith("@@"):
            first, length = (int(number) for number in [*line.split()[1][1:].split(","), "1"][:2])
            start = first - (length > 0)
            rebuilt += old[at:start]
            at = start
        elif line.startswith("+"):
            rebuilt.append(line[1:])
        else:
            assert old[at] == line[1:]
            rebuilt += [line[1:]] if line.startswith(" ") else []
            at += 1
    assert rebuilt + old[at:] == new
    signs = [line[:1] for line in lines[2:]]
    size = diff_words(signs.count("+"), signs.count("-"))
    assert compare_lines(old, new).summary.partition(",")[0] == size
    assert diff_words(*count_changes(old, new)) == size


@given(TEXTS)
def test_same_texts_have_no_hunks(text: list[str]) -> None:
    assert compare_lines(text, list(text)).hunks == ()


@given(TEXTS, TEXTS)
def test_marks_cover_what_differs_in_a_pair(old: list[str], new: list[str]) -> None:
    for row in compare_lines(old, new).rows:
        if row.kind is not LineKind.CHANGED or row.old is None or row.new is None:
            assert row.old_marks == row.new_marks == ()
            continue
        kept = [
            "".join(
                character for place, character in enumerate(line) if not any(a <= place < b for a, b in marks)
            )
            for line, marks in ((old[row.old], row.old_marks), (new[row.new], row.new_marks))
        ]
        assert kept[0].split() == kept[1].split()
        assert row.old_marks or row.new_marks


def test_lines_are_paired_by_content_not_by_position() -> None:
    old = ["a = tl.load(a_ptr + offsets)", "b = tl.load(b_ptr + offsets)"]
    new = ["mask = offsets < n", "b = tl.load(b_ptr + offsets, mask=mask)"]
    kinds = [(row.kind, row.old, row.new) for row in compare_lines(old, new).rows]
    assert kinds == [(LineKind.REMOVED, 0, None), (LineKind.ADDED, None, 0), (LineKind.CHANGED, 1, 1)]


def test_whole_words_are_marked() -> None:
    old, new = "acc = tl.dot(a, b, acc)", "acc = tl.dot(a, b2, total)"
    (row,) = compare_lines([old], [new]).rows
    assert [old[first:last] for first, last in row.old_marks] == ["b", "acc"]
    assert [new[first:last] for first, last in row.new_marks] == ["b2", "total"]


def test_unrelated_lines_are_removed_and_added() -> None:
    diff = compare_lines(["import torch"], ["x = tl.load(p)"])
    assert [row.kind for row in diff.rows] == [LineKind.REMOVED, LineKind.ADDED]


def test_moved_block_is_shown_in_its_new_place() -> None:
    block = ["def helper(x):", "    y = x + 1", "    return y"]
    rest = [f"line {number}" for number in range(5)]
    old, new = [*block, *rest], [*rest, *block]
    diff = compare_lines(old, new)
    assert diff.summary == "+3 -3, 3 moved"
    assert [row.kind for row in diff.rows[-3:]] == [LineKind.MOVED_HERE] * 3


def test_two_lines_are_no_block() -> None:
    block, rest = ["y = x + 1", "return y"], [f"line {number}" for number in range(5)]
    assert compare_lines([*block, *rest], [*rest, *block]).summary == "+2 -2"


@pytest.mark.parametrize(("distance", "hunks"), [(2 * CONTEXT + 1, 1), (2 * CONTEXT + 2, 2)])
def test_unchanged_lines_are_folded_if_that_saves_lines(distance: int, hunks: int) -> None:
    same = [f"line {number}" for number in range(distance)]
    diff = compare_lines(["a = 1", *same, "b = 1"], ["a = 2", *same, "b = 2"])
    assert len(diff.hunks) == hunks


def test_rewritten_text_takes_no_time_that_a_person_notices() -> None:
    began = process_time()
    assert sum(number * number for number in range(10**6))
    unit = process_time() - began  # the machine's speed
    old = [" + ".join(f"x_{i}_{j} * {i}" for j in range(14)) for i in range(199)]
    new = [line.replace("*", "/") for line in old]
    seconds = []
    for _ in range(3):  # other work on the machine slows some runs down
        began = process_time()
        diff = compare_lines(old, new)
        seconds.append(process_time() - began)
    assert min(seconds) < 4 * unit, (
        "the screen waits: 1.7 units here, 7 times as long with a quadratic comparison of words"
    )
    assert diff.summary == "+199 -199"
    row = diff.rows[0]
    assert {old[0][first:last] for first, last in row.old_marks} == {"*"}


def test_repeated_lines_do_not_take_long() -> None:
    old = ["a = 1", "b = 2", "c = 3"] * 1000
    assert compare_lines(old, old[1:]).summary == "+0 -1"
