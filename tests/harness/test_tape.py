"""Programs that run by a tape do what they do in Python, to the last bit, count and line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

STRAIGHT = ("rows", "misses", "promises", "blocks", "rounds", "other_globals", "other_pointers")
"""Kernels whose programs all go the same way."""


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("taping.py")


@pytest.mark.parametrize("name", [*STRAIGHT, "shares", "branches", "loops", "asserts"])
def test_a_tape_does_what_python_does(seen: Any, name: str) -> None:
    assert seen[name]["tape"]["found"] == seen[name]["python"]["found"]
    assert seen[name]["python"]["by_tape"] == 0


@pytest.mark.parametrize("name", STRAIGHT)
def test_programs_that_go_the_same_way_never_go_on_in_python(seen: Any, name: str) -> None:
    assert seen[name]["tape"]["by_tape"] > 0
    assert seen[name]["tape"]["went_on"] == 0


def test_a_program_that_goes_another_way_goes_on_in_python(seen: Any) -> None:
    assert 0 < seen["branches"]["tape"]["went_on"] < seen["branches"]["tape"]["by_tape"]


def test_an_assumption_that_fails_in_a_later_program_is_told_with_its_line(seen: Any) -> None:
    told = [one["raised"] for one in seen["asserts"]["tape"]["found"]]
    assert told[0] == told[2] == ""
    assert "Assume failed" in told[1]
    assert "line" in told[1]


def test_what_only_some_programs_do_wrong_is_seen(seen: Any) -> None:
    """In Python alone the tests above would hold too: the kernels have to show what they are for."""
    assert seen["misses"]["tape"]["found"][0]["missed"][0]
    assert seen["shares"]["tape"]["found"][0]["races"]
    assert seen["promises"]["tape"]["found"][0]["promises"]


def test_launches_that_are_alike_share_a_tape(seen: Any) -> None:
    """Three calls, of which two have the same sizes: one of the first program of each size is traced."""
    assert seen["rows"]["tape"]["traced"] == 2
    assert seen["other_pointers"]["tape"]["traced"] == 2
    assert seen["other_globals"]["tape"]["traced"] == 3
