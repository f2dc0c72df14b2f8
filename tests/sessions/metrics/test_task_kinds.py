"""Category and difficulty of tasks, from their suites; unknown stays unknown."""

from __future__ import annotations

from pathlib import Path

from sessions.metrics.task_kinds import TaskKind, task_kinds
from suites import add_suite
from suites.public.task import SuiteKind
from tests.suites.public import clones


def test_kinds_of_built_in_tasks_are_those_of_their_suite_and_others_are_unknown(tmp_path: Path) -> None:
    kinds = task_kinds(["starter/softmax", "starter/gone", "nowhere/x"], tmp_path / "suites.toml")
    assert kinds == {"starter/softmax": TaskKind("Activation", 2, 8)}
    assert task_kinds(["starter/softmax"], None) == kinds


def test_kind_of_a_public_task_is_that_of_its_clone(tmp_path: Path) -> None:
    registry = tmp_path / "home" / "suites.toml"
    add_suite("tritonbench-revised", clones.geak_eval(tmp_path / "GEAK-eval"), registry)
    names = ["tritonbench-revised/scale", "starter/softmax"]
    assert task_kinds(names, registry)[names[0]] == TaskKind(of_suite=1), (
        "without the original, nothing says it"
    )
    add_suite("tb", clones.tritonbench(tmp_path / "TritonBench"), registry, kind=SuiteKind.TRITONBENCH_G)
    assert task_kinds(names, registry)[names[0]] == TaskKind("", 2, 1)
