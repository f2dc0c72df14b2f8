"""Protects tapes of interpreted programs: results, counts and error lines equal those of the run in Python."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.judge.drivers import drive

pytestmark = pytest.mark.judge

STRAIGHT = ("rows", "misses", "promises", "blocks", "rounds", "changed_globals", "changed_pointers")
"""Kernels whose programs all take the same path."""


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("run_tapes.py")


@pytest.mark.parametrize("name", [*STRAIGHT, "shares", "branches", "loops", "asserts"])
def test_tape_gives_results_of_python(seen: Any, name: str) -> None:
    assert seen[name]["tape"]["results"] == seen[name]["python"]["results"]
    assert seen[name]["python"]["by_tape"] == 0


@pytest.mark.parametrize("name", STRAIGHT)
def test_programs_on_the_same_path_never_resume_in_python(seen: Any, name: str) -> None:
    assert seen[name]["tape"]["by_tape"] > 0
    assert seen[name]["tape"]["resumed"] == 0


def test_program_on_a_different_path_resumes_in_python(seen: Any) -> None:
    assert 0 < seen["branches"]["tape"]["resumed"] < seen["branches"]["tape"]["by_tape"]


def test_false_assumption_in_later_program_is_noted_with_its_line(seen: Any) -> None:
    results = seen["asserts"]["tape"]["results"]
    assert [result["raised"] for result in results] == ["", "", ""]
    before, false, after = (result["promises"] for result in results)
    assert before == after == []
    assert "line" in false[0]
    assert "`tl.assume`" in false[0]


def test_errors_of_some_programs_are_reported_with_a_tape(seen: Any) -> None:
    """Checks that the kernels show their errors; else the comparisons above would prove nothing."""
    assert seen["misses"]["tape"]["results"][0]["missed"][0]
    assert seen["promises"]["tape"]["results"][0]["promises"]


def test_equal_launches_share_a_tape(seen: Any) -> None:
    """Two of three calls have the same sizes; the first program of each size is traced."""
    assert seen["rows"]["tape"]["traced"] == 2
    assert seen["changed_pointers"]["tape"]["traced"] == 2
    assert seen["changed_globals"]["tape"]["traced"] == 3
