"""Reads a task folder into a `Task`, and refuses a folder that breaks the format."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from suites.errors import BadTask, nearest
from suites.source.package import Package
from suites.task import (
    Allowance,
    Axis,
    Case,
    EntryPoint,
    Output,
    QuantizationTolerance,
    Task,
    Tolerance,
)
from suites.task_rules import task_problems

TASK_FILE = "task.toml"
FILES = (TASK_FILE, "problem.py", "cost.py", "baseline.py")
_FILLED_IN = ("suite", "folder")
_AT_PATH = re.compile(r"^(?P<problem>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")


def read_task(folder: Path, *, suite: str) -> Task:
    """Return the task in a folder, with `suite` and `folder` filled in.

    Raises `BadTask` with file, key and problem if the folder breaks the format. No Python of the folder runs.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise BadTask(folder / name, "", f"is missing; a task folder has {', '.join(FILES)}")
    file = folder / TASK_FILE
    task = msgspec.structs.replace(_decode(file), suite=suite, folder=folder.resolve())
    if task.package is not None:
        root = str((task.folder / task.package.root).resolve())
        task = msgspec.structs.replace(task, package=msgspec.structs.replace(task.package, root=root))
    for key, problem in task_problems(task):
        raise BadTask(file, key, problem)
    return task


def _decode(file: Path) -> Task:
    """Return the task of a `task.toml`, checked for types alone. Raises `BadTask`."""
    try:
        raw = msgspec.toml.decode(file.read_bytes())
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise BadTask(file, "", f"cannot be read: {error}") from error
    for key in _FILLED_IN:
        if key in raw:
            raise BadTask(file, key, "must not be in the file: it follows from the place of the folder")
    try:
        return msgspec.convert(raw, Task, strict=True)
    except msgspec.ValidationError as error:
        raise _explained(file, str(error)) from error


def _explained(file: Path, message: str) -> BadTask:
    """Convert a message of msgspec to a `BadTask`, with the nearest valid name for an unknown key."""
    match = _AT_PATH.match(message)
    assert match is not None  # both groups match anything
    key = (match["path"] or "").removeprefix(".")
    if "Invalid enum value" in match["problem"] and key.startswith("allows"):
        return BadTask(file, key, f"{match['problem']}; one of {', '.join(Allowance)}")
    unknown = _UNKNOWN_FIELD.search(match["problem"])
    if unknown is None:
        return BadTask(file, key, match["problem"])
    field = unknown["field"]
    names = {
        name
        for kind in (Task, Axis, Case, EntryPoint, Output, Package, Tolerance, QuantizationTolerance)
        for name in kind.__struct_fields__
        if name not in _FILLED_IN
    }
    return BadTask(file, f"{key}.{field}".removeprefix("."), f"unknown key{nearest(field, names)}")
