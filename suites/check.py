"""Check the files of tasks without torch: the first part of `wavedeck task check`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from suites.costs import task_cost
from suites.errors import BadSuite, BadTask, UnknownTask
from suites.folder import read_task
from suites.registry import suite_folder, task_names
from suites.source.python_source import parse_python
from suites.source.signature import parse_signature
from suites.task import Task

_DEFINES = {
    "problem.py": (("make_inputs", ("sizes", "dtype", "generator")), ("oracle", None)),
    "cost.py": (("cost", ("sizes", "dtype")),),
}
"""Functions that each file of a task folder must define; parameters are given if they are the same for all tasks."""
_PROBE = {"probe_inputs": ("sizes", "dtype", "generator")}
"""Further function that `problem.py` must define if `[quantization]` has a `probe`."""


def check_suite(name: str, *, registry: Path | None = None) -> tuple[BadTask, ...]:
    """Return the problems of a suite's tasks, or of one task (`suite/task`).

    Runs each `cost.py` and only parses the other Python files. The harness checks baselines and oracles. A task gets at most
    one problem for its `task.toml`. Raises `UnknownSuite`, `UnknownTask` or `BadSuite` if there is nothing to check.
    """
    suite, _, short = name.partition("/")
    folder = suite_folder(suite, registry)
    names = task_names(folder)
    if not names:
        raise BadSuite(f"suite {suite!r}: no folder in {folder} has a task.toml")
    if short and short not in names:
        raise UnknownTask(name, known=[f"{suite}/{task}" for task in names])
    chosen = (short,) if short else names
    return tuple(problem for task in chosen for problem in _task_problems(folder / task, suite))


def check_task(folder: Path) -> tuple[BadTask, ...]:
    """Return the problems of the task in a folder, as `check_suite`."""
    return tuple(_task_problems(folder, folder.resolve().parent.name))


def _task_problems(folder: Path, suite: str) -> Iterator[BadTask]:
    """Yield the problems of a task's folder; only the first if `task.toml` is not valid, because the rest follows from it."""
    try:
        task = read_task(folder, suite=suite)
    except BadTask as problem:
        yield problem
        return
    for file, wanted in _DEFINES.items():
        yield from _definition_problems(folder / file, dict(wanted))
    if task.quantization is not None and task.quantization.probe is not None:
        yield from _definition_problems(folder / "problem.py", _PROBE)
    entry_points = {entry.name: parse_signature(entry.signature).parameters for entry in task.entry_points}
    yield from _definition_problems(folder / "baseline.py", entry_points)
    yield from _cost_problems(task)


def _definition_problems(file: Path, wanted: Mapping[str, tuple[str, ...] | None]) -> Iterator[BadTask]:
    """Yield the problems of a Python file of a task: functions that are missing or take other parameters.

    `wanted` has the parameters of each function, `None` if any will do. Further parameters need defaults.
    """
    try:
        module = parse_python(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError) as error:
        yield BadTask(file, "", f"cannot be read: {error}")
        return
    defined = {
        statement.name: statement.args for statement in module.body if isinstance(statement, ast.FunctionDef)
    }
    for name, parameters in wanted.items():
        if name not in defined:
            yield BadTask(file, name, "is not defined at the top of the file")
        elif parameters is not None:
            taken, optional = _parameters(defined[name])
            if [
                parameter for parameter in taken if parameter in parameters or parameter not in optional
            ] != list(parameters):
                yield BadTask(file, name, f"takes ({', '.join(taken)}), not ({', '.join(parameters)})")


def _parameters(arguments: ast.arguments) -> tuple[list[str], set[str]]:
    """Return the names of parameters, and of those with a default."""
    by_position = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    by_name = dict(
        zip((argument.arg for argument in arguments.kwonlyargs), arguments.kw_defaults, strict=True)
    )
    optional = {name for name, default in by_name.items() if default is not None}
    optional.update(by_position[len(by_position) - len(arguments.defaults) :])
    return [*by_position, *by_name], optional


def _cost_problems(task: Task) -> Iterator[BadTask]:
    """Yield the first problem of a task's cost model, which runs for all sizes of all cases."""
    for case in task.cases:
        for sizes in (case.cpu, case.gpu):
            try:
                cost = task_cost(task, sizes, case.dtype)
            except BadTask as problem:
                yield problem
                return
            if not cost.minimal_bytes and all(sizes.values()):
                yield BadTask(
                    task.folder / "cost.py",
                    "minimal_bytes",
                    f"is 0 for case {case.name}; every kernel moves bytes",
                )
                return
