"""Timing baselines: the task's own baseline, its PyTorch module, or any kernel file."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec

from harness.wire.errors import HarnessError
from suites.python_source import parse_python
from suites.task import Task

TASK, EAGER, COMPILE = "task", "eager", "compile"
KINDS = (TASK, EAGER, COMPILE)

_AS_ENTRY_POINT = """

_module = Model(*get_init_inputs()).cuda()
_called = {called}


def {name}(*args, **named):
    with torch.no_grad():
        return _called(*args, **named)
"""


class Baseline(msgspec.Struct, frozen=True):
    """A source that defines the task's entry points."""

    name: str
    """Shown with every ratio against it: `triton`, `eager`, `best.py`."""
    source: str


class Against(msgspec.Struct, frozen=True):
    """How a candidate is timed: against which baseline, and in which state of the caches."""

    baseline: Baseline | None = None
    """`None`: the task's own."""
    cold: bool = True
    """Whether caches are emptied before each sample."""
    energy: bool = False
    """Whether the energy of a call is measured too."""


USUAL = Against()


def timing_baseline(task: Task, kind: str = TASK) -> Baseline:
    """
    The baseline of one of `KINDS`; `HarnessError` if the task has none of this kind.

    `task` is the task's `baseline.py`; `eager` and `compile` are its `module.py`, run as it is and through `torch.compile`.
    """
    if kind == TASK:
        return Baseline(task.baseline, _read(task.folder / "baseline.py", task, kind))
    if kind not in KINDS:
        raise HarnessError(
            f"no timing baseline is called {kind!r}; use {', '.join(KINDS)}, or the path of a kernel file"
        )
    source = _read(task.folder / "module.py", task, kind)
    called = "_module" if kind == EAGER else "torch.compile(_module)"
    return Baseline(kind, source + _AS_ENTRY_POINT.format(name=task.entry_points[0].name, called=called))


def kernel_baseline(task: Task, file: str, source: str) -> Baseline:
    """Any kernel as a baseline, named after its file; `HarnessError` if it does not define the task's entry points."""
    try:
        defined = {node.name for node in parse_python(source).body if isinstance(node, ast.FunctionDef)}
    except SyntaxError as error:
        raise HarnessError(f"{file} is no Python, so nothing can be timed against it: {error.msg}") from error
    missing = [entry.name for entry in task.entry_points if entry.name not in defined]
    if missing:
        raise HarnessError(f"{file} defines no function `{missing[0]}`, so nothing can be timed against it")
    return Baseline(Path(file).name, source)


def _read(file: Path, task: Task, kind: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise HarnessError(
            f"{task.id} has no timing baseline {kind!r} ({file.name}: {error.strerror}); use another baseline"
        ) from error
