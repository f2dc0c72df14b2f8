"""Inputs in other storages, special values among them, and where the judge keeps them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.judge


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.layouts"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_values_stay_whatever_the_layout_and_the_guest_gets_the_same_strides(told: dict[str, Any]) -> None:
    assert len(told["layouts"]) == 6 * 6 * 4
    assert all(row["equal"] and row["same strides"] and row["unused"] for row in told["layouts"])


def test_each_layout_is_what_its_name_says(told: dict[str, Any]) -> None:
    for row in told["layouts"]:
        layout, plural = row["layout"], row["elements"] > 1
        if row["dim"] == 0 or row["elements"] == 0:
            assert row["contiguous"]
            continue
        assert (row["offset"] > 0) is (layout in ("offset", "unaligned"))
        assert row["aligned"] is (layout != "unaligned")
        strided = {"transposed": row["dim"] > 1, "padded rows": row["dim"] > 1, "every second element": True}
        assert row["contiguous"] is not (strided.get(layout, False) and plural)


def test_special_values_are_one_of_each(told: dict[str, Any]) -> None:
    assert all((row["nan"], row["inf"], row["low"]) == (1, 1, 1) for row in told["special"])


def test_where_there_is_a_fourth_row_it_is_minus_infinity_throughout(told: dict[str, Any]) -> None:
    assert all(row["whole"] == (row["rows"] > 3) for row in told["special"])
    assert any(row["whole"] for row in told["special"])


def test_held_memory_takes_other_values_under_the_same_tensors_alone(told: dict[str, Any]) -> None:
    assert told["refilled"] == {
        "taken": True,
        "seen": True,
        "unchanged": True,
        "other shape": False,
        "other dtype": False,
        "change seen": True,
    }


def test_oracles_run_once_a_place_and_what_is_kept_is_bounded(told: dict[str, Any]) -> None:
    vault = dict(told["vault"])
    assert vault.pop("oracle calls") == 4 + 4
    assert all(vault.values()), vault
