"""Writes the folder of a task for a kernel that no task names yet."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from suites.errors import BadKernelFile, BadTask
from suites.folder import read_task
from suites.privacy import make_private_folder
from suites.registry import OWN, own_folder
from suites.task import Task
from suites.task_rules import NAME

from .draft import Draft
from .texts import files_of


def own_name(draft: Draft) -> str:
    """Return the name of a draft's task in the suite `OWN`: its entry point, and a digest of all its texts."""
    digest = hashlib.blake2b("\0".join(files_of(draft, "").values()).encode(), digest_size=3).hexdigest()
    plain = re.sub(r"[^a-z0-9_]", "", draft.entry.name.lower()).lstrip("_0123456789") or "kernel"
    return f"{plain}-{digest}"


@contextmanager
def kept_own(draft: Draft, registry: Path) -> Iterator[Task]:
    """Write a draft into the suite `OWN`, beside the registry, unless it is there; give the task.

    A new folder is removed again if the block raises: then nothing has used the task.
    """
    folder = own_folder(registry) / own_name(draft)
    is_new = not folder.exists()
    if is_new:
        make_private_folder(folder.parent)
        write_draft(draft, folder)
    try:
        yield read_task(folder, suite=OWN)
    except BaseException:
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # other tasks are in it
                folder.parent.rmdir()
        raise


def check_new_folder(folder: Path) -> None:
    """Raise `BadKernelFile` if a folder exists, or if its name cannot name a task."""
    if not NAME.fullmatch(folder.name):
        raise BadKernelFile(
            f"{folder.name!r} cannot name a task: use lower-case letters, digits, `_` and `-`, and begin with a letter"
        )
    if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
        raise BadKernelFile(f"{folder} exists already; give another folder")


def write_draft(draft: Draft, folder: Path) -> None:
    """Write a draft's task into a new folder, whole or not at all.

    Raises `BadKernelFile` if the folder exists or cannot be written, or if its name cannot name a task.
    """
    check_new_folder(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".task-") as scratch:
            new = Path(scratch) / folder.name
            new.mkdir()
            for name, text in files_of(draft, folder.name).items():
                (new / name).write_text(text, encoding="utf-8")
            read_task(new, suite=OWN)
            new.rename(folder)
    except BadTask as problem:
        where = f"{problem.file.name}: `{problem.key}` " if problem.key else f"{problem.file.name} "
        raise BadKernelFile(f"{draft.file.path} makes no valid task: {where}{problem.problem}") from problem
    except OSError as error:
        raise BadKernelFile(f"{folder} cannot be written: {error.strerror}") from error
