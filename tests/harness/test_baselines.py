"""What a candidate is timed against, and several GPUs' evaluations as one."""

from __future__ import annotations

import ast

import msgspec
import pytest

from harness import Evaluation, HarnessError, Latency, Outcome, Stage, Verdict
from harness.stages.spread import merge_evaluations
from harness.stages.timing.baselines import kernel_baseline, timing_baseline
from harness.wire.evaluation import SCHEMA, STAGES
from suites import baseline_source, load_suite, load_task


def test_the_tasks_own_baseline_is_named_by_what_it_is_written_in() -> None:
    task = load_task("softmax")
    found = timing_baseline(task)
    assert (found.name, found.source) == ("triton", baseline_source(task))


@pytest.mark.parametrize("name", [task.name for task in load_suite("starter")])
@pytest.mark.parametrize("kind", ["eager", "compile"])
def test_every_starter_task_can_be_timed_against_its_module(name: str, kind: str) -> None:
    task = load_task(name)
    found = timing_baseline(task, kind)
    defined = {node.name for node in ast.parse(found.source).body if isinstance(node, ast.FunctionDef)}
    assert found.name == kind
    assert task.entry_points[0].name in defined
    assert ("torch.compile(_module)" in found.source) == (kind == "compile")


def test_an_unknown_kind_and_a_task_without_a_module_say_what_to_do() -> None:
    task = load_task("softmax")
    with pytest.raises(HarnessError, match=r"use task, eager, compile, or the path of a kernel file"):
        timing_baseline(task, "fastest")
    bare = msgspec.structs.replace(task, folder=task.folder / "nowhere")
    with pytest.raises(HarnessError, match="has no timing baseline 'eager'"):
        timing_baseline(bare, "eager")


def test_any_kernel_may_be_a_baseline_if_it_defines_the_entry_points() -> None:
    task = load_task("softmax")
    assert kernel_baseline(task, "old/best.py", "def softmax(x):\n    return x\n").name == "best.py"
    with pytest.raises(HarnessError, match=r"best\.py defines no function `softmax`"):
        kernel_baseline(task, "best.py", "def other(x):\n    return x\n")
    with pytest.raises(HarnessError, match=r"best\.py is no Python"):
        kernel_baseline(task, "best.py", "def softmax(x:\n")


def evaluation(device: str, verdict: Verdict, speedup: float | None) -> Evaluation:
    latency = (
        ()
        if speedup is None
        else (Latency(device, "fp32", speedup, 1.0, speedup, (speedup, speedup), "graph", Outcome.FASTER),)
    )
    return Evaluation(
        schema=SCHEMA,
        task="starter/softmax",
        device=device,
        verdict=verdict,
        call=True,
        execution=True,
        stages=tuple(Stage(name, True, 0.0) for name in STAGES),
        latency=latency,
        speedup=speedup,
        notes=("odd",),
    )


def test_a_spread_has_the_latencies_of_all_devices_and_the_first_failure_decides() -> None:
    right = [evaluation("1", Verdict.CORRECT, 1.5), evaluation("0", Verdict.CORRECT, 1.3)]
    found = merge_evaluations(right)
    assert [each.device for each in found.latency] == ["0", "1"]
    assert found.speedup == pytest.approx(1.4)
    assert found.notes == ("GPU 0: odd", "GPU 1: odd")
    assert found.not_timed == ()
    part = msgspec.structs.replace(right[0], speedup=None, not_timed=("fp16",))
    for some in ([part, right[1]], [right[0], evaluation("2", Verdict.CORRECT, None)]):
        assert (merge_evaluations(some).speedup, merge_evaluations(some).speedup_geomean) == (None, None), (
            "not of every case on every GPU"
        )
    assert merge_evaluations([part, right[1]]).not_timed == ("fp16 on GPU 0", "fp16 on GPU 1")
    assert (
        merge_evaluations([right[0], evaluation("2", Verdict.CORRECT, None)]).in_part
        == "not whole: 1 of 2 cases"
    )
    failed = merge_evaluations([*right, evaluation("2", Verdict.WRONG, None)])
    assert (failed.verdict, failed.device) == (Verdict.WRONG, "2")
    assert len(failed.latency) == 2
