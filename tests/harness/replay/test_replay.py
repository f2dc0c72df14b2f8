"""Protects the replay of honest calls: recorded in one process, run again in a second process from their kernels.

`tests/adversarial` holds cheats that do not replay.
"""

from __future__ import annotations

import ast
from typing import Any

import pytest

from harness.wire.calls.records import Function, Launch, Record, trials
from tests.support.judge.drivers import DRIVERS, drive

pytestmark = pytest.mark.judge


def honest_names() -> list[str]:
    tree = ast.parse((DRIVERS / "replayed_kernels.py").read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return [
        node.name
        for node in functions
        if [argument.arg for argument in node.args.args] == ["x"] and not node.decorator_list
    ]


HONEST = honest_names()


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    return dict(drive("replay_calls.py", *HONEST))


@pytest.mark.parametrize("name", HONEST)
def test_honest_call_replays_on_different_values(honest: dict[str, Any], name: str) -> None:
    results = honest[name]
    assert results["error"] == ""
    assert results["why"] == [""] * 4
    assert results["right"] == [True] * 4
    assert all(replay.get("right") for replay in results["replays"]), results["replays"]
    assert all(set(replay["origins"]) == {"stored"} for replay in results["replays"]), results["replays"]
    assert name == "in_place" or all(replay["touched"] == [] for replay in results["replays"])


def test_autotune_trial_is_not_counted_if_its_launch_follows() -> None:
    kernel = Function(name="kernel", line=1)

    def launch(programs: int, *, trial: bool = False) -> Launch:
        return Launch(kernel, (programs, 1, 1), {"n": 5}, {"num_warps": 4}, trial=trial)

    steps = (launch(1, trial=True), launch(2, trial=True), launch(1), launch(1, trial=True))
    assert trials(Record(inputs={}, steps=steps, functions=(), returned=())) == {0}
