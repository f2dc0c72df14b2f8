"""Protects the choice of a timing baseline, and the merge of several GPUs' evaluations."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import msgspec
import pytest

from harness import Evaluation, HarnessError, Verdict
from harness.stages.spread import merge_evaluations
from harness.stages.timing.baselines import Baseline, other_baseline, timing_baseline
from harness.wire.errors import UnknownBaseline
from suites import baseline_source, load_suite, load_task
from tests.support.judge.evaluations import correct


def test_task_baseline_is_named_triton() -> None:
    task = load_task("softmax")
    baseline = timing_baseline(task)
    assert (baseline.name, baseline.source) == ("triton", baseline_source(task))


@pytest.mark.parametrize("name", [task.name for task in load_suite("starter")])
@pytest.mark.parametrize("kind", ["eager", "compile"])
def test_starter_task_has_eager_and_compiled_baselines(name: str, kind: str) -> None:
    task = load_task(name)
    baseline = timing_baseline(task, kind)
    defined = {node.name for node in ast.parse(baseline.source).body if isinstance(node, ast.FunctionDef)}
    assert baseline.name == kind
    assert task.entry_points[0].name in defined
    assert ("torch.compile(_module)" in baseline.source) == (kind == "compile")


def test_unknown_baseline_error_says_what_to_do() -> None:
    task = load_task("softmax")
    with pytest.raises(HarnessError, match=r"use task, eager, compile, or the path of a kernel file"):
        timing_baseline(task, "fastest")
    bare = msgspec.structs.replace(task, folder=task.folder / "nowhere")
    with pytest.raises(HarnessError, match="has no timing baseline 'eager'"):
        timing_baseline(bare, "eager")


def test_other_baseline_is_a_file_a_function_of_a_file_or_of_a_package(tmp_path: Path) -> None:
    task = load_task("softmax")
    file = tmp_path / "best.py"

    def baseline(text: str, function: str = "") -> Baseline:
        file.write_text(text)
        return other_baseline(task, f"{file}{function}", lambda name: Path(name).read_text())

    assert baseline("def softmax(x):\n    return x\n").name == "best.py"
    named = baseline("def fast(x):\n    return x\n", ":fast")
    assert named == Baseline(f"{file}:fast", "def fast(x):\n    return x\n\n\nsoftmax = fast\n")
    imported = other_baseline(task, "torch.nn.functional:softmax", Path.read_text)  # type: ignore[arg-type]
    assert imported.source == "from torch.nn.functional import softmax as softmax\n"
    operator = other_baseline(task, "torch.ops.aten.relu", Path.read_text)  # type: ignore[arg-type]
    assert operator.source.endswith("def softmax(x):\n    return torch.ops.aten.relu(x)\n")
    for text, function, words in (
        ("def other(x):\n    return x\n", "", r"best\.py defines no function `softmax`"),
        ("def softmax(x):\n    return x\n", ":fast", r"best\.py defines no function `fast`"),
        ("def softmax(x:\n", "", r"best\.py is no Python"),
    ):
        with pytest.raises(UnknownBaseline, match=words):
            baseline(text, function)


def evaluation(device: str, verdict: Verdict, speedup: float | None) -> Evaluation:
    judged = correct(speedup=speedup)
    latency = tuple(msgspec.structs.replace(row, device=device) for row in judged.latency)
    return msgspec.structs.replace(judged, device=device, verdict=verdict, latency=latency, notes=("odd",))


def test_merged_means_have_the_intervals_of_all_gpus() -> None:
    """The error of the joint mean is smaller than that of each GPU by the root of two."""
    half = 0.02
    gpus = [
        msgspec.structs.replace(
            evaluation(device, Verdict.CORRECT, speedup),
            speedup_ci=(speedup - half, speedup + half),
            speedup_geomean_ci=(speedup * math.exp(-half), speedup * math.exp(half)),
        )
        for device, speedup in (("0", 1.0), ("1", 2.0))
    ]
    merged = merge_evaluations(gpus)
    joint = half / math.sqrt(2)
    assert merged.speedup_ci == pytest.approx((1.5 - joint, 1.5 + joint))
    assert merged.speedup_geomean_ci == pytest.approx(
        (math.sqrt(2) * math.exp(-joint), math.sqrt(2) * math.exp(joint))
    )
    untimed = evaluation("2", Verdict.CORRECT, None)
    assert merge_evaluations([gpus[0], untimed]).speedup_ci == pytest.approx(gpus[0].speedup_ci)
    assert merge_evaluations([untimed]).speedup_ci is None


def test_merge_keeps_all_latencies_and_first_failure_decides() -> None:
    correct = [evaluation("1", Verdict.CORRECT, 1.5), evaluation("0", Verdict.CORRECT, 1.3)]
    merged_evaluation = merge_evaluations(correct)
    assert [latency.device for latency in merged_evaluation.latency] == ["0", "1"]
    assert merged_evaluation.speedup == pytest.approx(1.4)
    assert merged_evaluation.notes == ("GPU 0: odd", "GPU 1: odd")
    assert merged_evaluation.not_timed == ()
    partial = msgspec.structs.replace(correct[0], speedup=None, not_timed=("fp16",))
    for evaluations, speedup in (
        ([partial, correct[1]], 1.4),
        ([correct[0], evaluation("2", Verdict.CORRECT, None)], 1.5),
    ):
        assert merge_evaluations(evaluations).speedup == pytest.approx(speedup)
    assert merge_evaluations([partial, correct[1]]).untimed_places == ["fp16 on GPU 0", "fp16 on GPU 1"]
    assert merge_evaluations([correct[0], evaluation("2", Verdict.CORRECT, None)]).in_part == "1 of 2 cases"
    failed = merge_evaluations([*correct, evaluation("2", Verdict.WRONG, None)])
    assert (failed.verdict, failed.device) == (Verdict.WRONG, "2")
    assert len(failed.latency) == 2
