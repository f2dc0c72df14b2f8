"""What is kept of each byte's origin is there again, whatever was marked meanwhile and however often."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

EVERY_OTHER = slice(1, None, 2)


@pytest.fixture(scope="module")
def seen() -> Any:
    return drive("shadows.py")


@pytest.mark.parametrize("change", ["stored", "filled", "copied"])
def test_a_snapshot_outlives_what_is_marked_after_it(seen: Any, change: str) -> None:
    before, after, back, again, at_last = seen[change]
    assert before == back == at_last == [0] * 8
    assert after == again != before


def test_marks_tell_stores_from_fills_and_copies(seen: Any) -> None:
    assert seen["stored"][1] == [0, 0, 6, 0, 6, 0, 0, 0]
    assert seen["filled"][1][EVERY_OTHER] == [3] * 4
    assert seen["copied"][1][EVERY_OTHER] == [2] * 4
