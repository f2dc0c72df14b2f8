"""`O`: an attempt as files in the current folder."""

from __future__ import annotations

from itertools import count
from pathlib import Path

from sessions.kept_kernels import KeptKernel
from suites import Task
from tui.print.export_files import export_files


def write_export(kernel: KeptKernel, task: Task, folder: Path) -> Path:
    """Write what `wavedeck export` writes into a new folder in `folder`; returns the new folder.

    Raises `OSError` if the folder cannot be written, and `SuiteError` if a file of the task cannot be read.
    """
    texts = export_files(kernel, task)
    stem = kernel.attempt.replace("#", "-").replace("/", "-")
    for number in count(1):
        place = folder / (stem if number == 1 else f"{stem}~{number}")
        try:
            place.mkdir()
        except FileExistsError:
            continue
        for name, text in texts.items():
            (place / name).write_text(text, encoding="utf-8", errors="replace")
        return place
    raise AssertionError("there is always a further number")
