"""What helpers compile ahead changes nothing but the time that compiling takes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.driving import drive

pytestmark = pytest.mark.judge

BAD = ("child killed", "scout hung")


@pytest.fixture(scope="module")
def found() -> Any:
    both = "alone,helped"
    return drive(
        "compiling_ahead.py",
        f"twelve_configs={','.join(('alone', 'helped', *BAD))}",
        f"vector_add={both}",
        f"one_bad_config={both}",
    )


def plain(run: Any) -> Any:
    """All of a report but how long things took."""
    rows = [{**row, "compile_seconds": None} for row in run["report"]["resources"]]
    return {**run["report"], "resources": rows}


NAMES = ("twelve_configs", "one_bad_config", "vector_add")


@pytest.mark.parametrize("name", NAMES)
def test_a_report_is_the_same_with_help(found: Any, name: str) -> None:
    alone, helped = found[name]["alone"], found[name]["helped"]
    assert plain(helped) == plain(alone)
    assert (helped["printed"], helped["left"]) == (alone["printed"], 0)


def test_helpers_compile_all_configs_that_compile(found: Any) -> None:
    runs = found["twelve_configs"]
    assert [row["autotune_index"] for row in runs["helped"]["report"]["resources"][:12]] == list(range(12))
    flags = [row["flags"] for row in runs["helped"]["report"]["resources"]]
    assert [one for one in flags if one] == [["failed"], ["failed"], ["too_large"]]
    assert runs["helped"]["report"]["error"] is None
    assert runs["alone"]["trusted"] == 0
    assert runs["helped"]["trusted"] == len(runs["helped"]["groups"])
    assert runs["helped"]["groups"] == runs["alone"]["groups"], "what is carried on to guests and timers"
    assert runs["helped"]["steps"] == runs["alone"]["steps"] + runs["helped"]["trusted"]
    assert all(row["compile_seconds"] for row in runs["helped"]["report"]["resources"] if row["binary"])


def test_a_mistake_is_told_with_its_line(found: Any) -> None:
    report = found["one_bad_config"]["helped"]["report"]
    assert report["error"]
    assert report["line"]


@pytest.mark.parametrize("fate", BAD)
def test_lost_helpers_cost_time_alone(found: Any, fate: str) -> None:
    runs = found["twelve_configs"]
    assert plain(runs[fate]) == plain(runs["alone"])
    assert runs[fate]["trusted"] < runs["helped"]["trusted"]
    assert runs[fate]["groups"] == runs["alone"]["groups"]
    assert runs[fate]["left"] == 0
