"""Calls recorded in one process and run again in another by their kernels alone: the honest replay, cheats do not."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from harness.worker.serving.records import Function, Launch, Record, trials
from tests.harness.driving import HERE, drive

pytestmark = pytest.mark.judge

TRICKS = {
    # what computed the answer was no kernel
    "writes_by_address": "wrong",
    "computes_unseen_and_copies": "wrong",
    "computes_unseen_into_the_output": "wrong",
    "a_hook_computes": "wrong",
    "python_inside_a_kernel": "NameError",
    # answers entered from the host
    "answers_in_a_table": "wrong",
    "answers_as_scalars": "wrong",
    "fills_one_by_one": "wrong",
    "keeps_answers": "wrong",
    # host copies did the work
    "flips_by_copies": "moved",
    "hands_a_clone_back": "moved",
    "copies_what_the_kernel_left": "moved",
    "borrows_the_input": "touched",
}
"""What the replay of each trick shows."""


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
    return dict(drive("replaying.py", str(HERE / "replay_honest.py"), *HONEST))


@pytest.fixture(scope="module")
def cheats() -> dict[str, Any]:
    return dict(drive("replaying.py", str(HERE / "replay_cheats.py"), *TRICKS))


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_call_replays_on_other_values(honest: dict[str, Any], name: str) -> None:
    found = honest[name]
    assert found["error"] == ""
    assert found["why"] == [""] * 4
    assert found["right"] == [True] * 4
    assert all(one.get("right") for one in found["replays"]), found["replays"]
    assert all(set(one["origins"]) == {"stored"} for one in found["replays"]), found["replays"]
    assert name == "in_place" or all(one["touched"] == [] for one in found["replays"])


@pytest.mark.parametrize("name", TRICKS)
def test_a_trick_that_the_guest_cannot_see_does_not_replay(cheats: dict[str, Any], name: str) -> None:
    found = cheats[name]
    assert found["error"] == ""
    assert found["right"] == [True] * 4, "the trick itself must work"
    assert found["clean"] == [True] * 4, "the guest must see nothing"
    assert all(says(one, TRICKS[name]) for one in found["replays"]), found["replays"]


def says(replay: dict[str, Any], sign: str) -> bool:
    if sign == "wrong":
        return replay.get("right") is False
    if sign == "moved":
        return bool(replay["origins"].get("moved"))
    if sign == "touched":
        return bool(replay["touched"])
    return sign in replay["refused"]


def test_a_trial_run_is_left_out_of_the_counts_only_where_the_same_launch_follows() -> None:
    kernel = Function(name="kernel", line=1)

    def launch(programs: int, *, trial: bool = False) -> Launch:
        return Launch(kernel, (programs, 1, 1), {"n": 5}, {"num_warps": 4}, trial=trial)

    steps = (launch(1, trial=True), launch(2, trial=True), launch(1), launch(1, trial=True))
    assert trials(Record(inputs={}, steps=steps, functions=(), returned=())) == {0}
