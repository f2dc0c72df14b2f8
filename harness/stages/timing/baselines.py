"""Timing baselines: the task's own baseline, its PyTorch module, or any kernel file."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.wire.errors import HarnessError, UnknownBaseline
from suites.public.syntax.outline import definitions
from suites.source.python_source import parse_python
from suites.source.signature import parse_signature
from suites.task import Task

TASK, EAGER, COMPILE = "task", "eager", "compile"
KINDS = (TASK, EAGER, COMPILE)

_OPERATOR = re.compile(r"torch\.ops(\.[A-Za-z_]\w*){2,3}")

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
    sustained: bool = False
    """Whether calls are timed without pause too."""


USUAL = Against()


def timing_baseline(task: Task, kind: str = TASK) -> Baseline:
    """The baseline of one of `KINDS`; `HarnessError` if the task has none of this kind.

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


def other_baseline(task: Task, where: str, read: Callable[[str], str]) -> Baseline:
    """Any callable as a baseline, named as the person names it: FILE, FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION or torch.ops.X.Y.

    `read` returns the text of a file. A FILE alone defines the task's entry points; another function replaces the
    first entry point. A function has the entry point's parameters by name, an operator of `torch.ops` in their order.
    `UnknownBaseline` if there is no such file, or if the file does not define the function.
    """
    entry = task.entry_points[0].name
    if _OPERATOR.fullmatch(where):
        signature = task.entry_points[0].signature
        arguments = ", ".join(parse_signature(signature).parameters)
        return Baseline(where, f"import torch\n\n\ndef {signature}:\n    return {where}({arguments})\n")
    place, _, function = where.rpartition(":")
    if (
        place
        and not place.endswith(".py")
        and all(part.isidentifier() for part in (*place.split("."), function))
    ):
        return Baseline(where, f"from {place} import {function} as {entry}\n")
    file, wanted = (place, (function,)) if place.endswith(".py") else (where, ())
    if not Path(file).exists():
        raise UnknownBaseline(
            f"--against {where}: neither one of {', '.join(KINDS)} nor a kernel file nor PACKAGE.MODULE:FUNCTION nor torch.ops.X.Y"
        )
    source = read(file)
    try:
        defined = dict(definitions(parse_python(source).body))
    except SyntaxError as error:
        raise UnknownBaseline(
            f"{file} is no Python, so nothing can be timed against it: {error.msg}"
        ) from error
    for name in wanted or tuple(entry_point.name for entry_point in task.entry_points):
        if name not in defined:
            raise UnknownBaseline(f"{file} defines no function `{name}`, so nothing can be timed against it")
    if wanted and function != entry:
        source = f"{source.rstrip()}\n\n\n{entry} = {function}\n"
    return Baseline(where if wanted else Path(file).name, source)


def _read(file: Path, task: Task, kind: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise HarnessError(
            f"{task.id} has no timing baseline {kind!r} ({file.name}: {error.strerror}); "
            "name a PyTorch function with the same parameters: --against FILE.py:FUNCTION"
        ) from error
