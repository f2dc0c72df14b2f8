"""Protects the choice of a timing baseline."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from harness import HarnessError
from harness.stages.timing.baselines import Baseline, other_baseline, timing_baseline
from harness.wire.errors import UnknownBaseline
from suites import baseline_source, load_suite, load_task


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
