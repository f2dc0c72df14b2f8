"""Programs that run at once store what they store one after the other; those of whom that is not sure run so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

TOGETHER = (
    "arithmetic", "sums", "rows and columns", "by a function", "running sums", "turned", "joined", "gathered", "a dot",
    "chosen by a number", "masks", "numbers", "a loop", "a branch for all", "one place",
)  # fmt: skip
APART = (
    "a loop by program", "a branch by program", "an end by program", "hands on", "hands back", "stores twice", "in place",
    "half an element", "atomics", "a swap", "counted", "waits", "outside",
)  # fmt: skip


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("together.py", *TOGETHER, *APART)


@pytest.mark.parametrize("what", [*TOGETHER, *APART])
def test_what_programs_store_is_the_same_together_and_one_by_one(seen: Any, what: str) -> None:
    together, alone = seen[what]
    assert together["out"] == pytest.approx(alone["out"], rel=1e-6, abs=1e-6)
    assert together["i"] == alone["i"]
    assert together["marked"] == alone["marked"]
    assert together["told"] == alone["told"]
    assert alone["at once"] == 1


@pytest.mark.parametrize("what", TOGETHER)
def test_programs_that_go_one_way_run_at_once(seen: Any, what: str) -> None:
    assert seen[what][0]["at once"] > 1


@pytest.mark.parametrize("what", APART)
def test_programs_that_part_or_may_meet_run_one_by_one(seen: Any, what: str) -> None:
    assert seen[what][0]["at once"] == 1


def test_an_access_outside_is_told_of_the_program_that_makes_it(seen: Any) -> None:
    assert "outside every tensor" in seen["outside"][0]["told"]
