"""Calls recorded in one process and run again in another by their kernels alone; `tests/adversarial` has the cheats that do not."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from harness.wire.records import Function, Launch, Record, trials
from tests.harness.driving import HERE, drive

pytestmark = pytest.mark.judge


def honest_names() -> list[str]:
    tree = ast.parse((HERE / "replay_honest.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [
        node.name
        for node in functions
        if [one.arg for one in node.args.args] == ["x"] and not node.decorator_list
    ]


HONEST = honest_names()


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return dict(drive("replaying.py", *HONEST))


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_call_replays_on_other_values(honest: dict[str, Any], name: str) -> None:
    found = honest[name]
    assert found["error"] == ""
    assert found["why"] == [""] * 4
    assert found["right"] == [True] * 4
    assert all(one.get("right") for one in found["replays"]), found["replays"]
    assert all(set(one["origins"]) == {"stored"} for one in found["replays"]), found["replays"]
    assert name == "in_place" or all(one["touched"] == [] for one in found["replays"])


def test_a_trial_run_is_left_out_of_the_counts_only_where_the_same_launch_follows() -> None:
    kernel = Function(name="kernel", line=1)

    def launch(programs: int, *, trial: bool = False) -> Launch:
        return Launch(kernel, (programs, 1, 1), {"n": 5}, {"num_warps": 4}, trial=trial)

    steps = (launch(1, trial=True), launch(2, trial=True), launch(1), launch(1, trial=True))
    assert trials(Record(inputs={}, steps=steps, functions=(), returned=())) == {0}
