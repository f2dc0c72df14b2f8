"""Trace sets of flashinfer-bench and SOL-ExecBench: the calls that their workloads give, and what cannot be judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from suites.public.clone import Clone, kinds_of
from suites.public.loader import PublicSuite, load_clone
from suites.public.task import PublicTask, ReferenceKind, SuiteKind
from tests.suites.public import clones
from tests.suites.public.clones.trace_sets import STORED


def loaded(folder: Path, kind: SuiteKind) -> PublicSuite:
    assert kinds_of(folder) == (kind,)
    return load_clone(Clone("traces", kind, folder))


def calls(task: PublicTask, test: str) -> list[tuple[Any, ...]]:
    """Return the arguments of the calls that a script of the task makes, on the CPU."""
    arguments: list[tuple[Any, ...]] = []
    text = test.replace('device="cuda"', 'device="cpu"').replace('.to("cuda")', "")
    names: dict[str, Any] = {}
    exec(task.reference.text, names)  # noqa: S102 -- the fixture's text
    names["run"] = lambda *values: arguments.append(values)
    exec(text, names)  # noqa: S102
    return arguments


def test_definitions_are_tasks_and_workloads_their_calls(tmp_path: Path) -> None:
    suite = loaded(clones.trace_set(tmp_path / "set"), SuiteKind.FLASHINFER_TRACE)
    tasks = {task.name: task for task in suite.tasks}
    task = tasks["scale_d40"]
    assert (task.unsupported, task.file, task.category, task.title) == (
        "",
        "scale/scale_d40",
        "scale",
        "Scale rows",
    )
    assert [entry.signature for entry in task.entry_points] == ["run(x, factor)"]
    assert task.reference_kind is ReferenceKind.TORCH
    assert "rows, columns=40" in task.instruction
    small, large = calls(task, task.test.text), calls(task, task.performance.text)
    rows = [x.shape[0] for x, _ in (*small, *large)]
    assert rows == sorted(rows)
    assert (len(rows), rows[0], rows[-1]) == (8, 1, 4000), "from the smallest to the largest"
    assert [x.shape[0] for x, _ in large] == [4000], "too large for the interpreter"
    assert {factor for _, factor in small} == {3.0}
    assert tasks["packed"].unsupported == "it has the dtype float4_e2m1"
    assert "unused.jsonl" in tasks["unused"].unsupported


def test_stored_tensors_are_inputs_and_missing_ones_are_named(tmp_path: Path) -> None:
    suite = loaded(clones.trace_set(tmp_path / "set"), SuiteKind.FLASHINFER_TRACE)
    task = next(task for task in suite.tasks if task.name == "take")
    ((x, at),) = calls(task, task.test.text)
    assert (tuple(x.shape), at.dtype, tuple(at.tolist())) == ((3, 6), torch.int32, STORED)
    (note,) = suite.notes
    assert note == (
        "traces: take: 3 of 4 workloads left out: blob/pointer.safetensors is a pointer of Git LFS; "
        "fetch the file with `git lfs pull`"
    )
    (tmp_path / "set" / "blob" / "here.safetensors").unlink()
    suite = loaded(tmp_path / "set", SuiteKind.FLASHINFER_TRACE)
    (reason,) = (task.unsupported for task in suite.tasks if task.name == "take")
    assert reason == "take cannot be read: blob/here.safetensors is missing in the folder"


def test_definition_of_sol_execbench_makes_its_own_inputs(tmp_path: Path) -> None:
    (task,) = loaded(clones.sol_execbench(tmp_path / "set"), SuiteKind.SOL_EXECBENCH).tasks
    assert (task.unsupported, task.name, task.file) == ("", "l1-take_2", "L1/take")
    ((x, at),) = calls(task, task.test.text)
    assert (x.min(), tuple(x.shape), tuple(at.shape)) == (1, (3, 6), (5,))
