"""`O`: an attempt, or reports, as files in the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from textual.app import App

from sessions.home import Home
from sessions.kept_kernels import KeptKernel
from suites import Task
from tui.cockpit.dialogs.dialogs import ConfirmDialog
from tui.cockpit.draw.lines import clean
from tui.diagnostics import Complaint
from tui.print.export_files import export_files
from tui.print.plain import COLUMNS

ENDINGS = ("md", "html", "csv")
"""Files of a report."""


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


def write_reports(app: App[Any], home: Home, sessions: Sequence[str]) -> None:
    """Ask, then write Markdown, HTML and CSV into the current folder; a note says where they are, or why they are not."""
    folder = Path.cwd()
    files = new_files(sessions, folder)

    def answered(yes: bool | None) -> None:  # noqa: FBT001 -- a dialog's answer
        if yes:
            app.run_worker(
                partial(_write, app, home, sessions, files),
                name="writing the report",
                group="write",
                exclusive=True,
                thread=True,
                exit_on_error=False,
            )

    names = "\n".join(file.name for file in files)
    app.push_screen(
        ConfirmDialog("Write the report?", consequence=clean(f"Into {folder}:\n{names}")), answered
    )


def run_command(home: Home, words: Sequence[str], *, columns: int = 80) -> str:
    """Return what a command prints; it runs in a process of its own, so that the app never loads its libraries.

    Raises `Complaint` with its line if it fails. `columns` is the width of the text.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tui", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "WAVEDECK_HOME": str(home.root), COLUMNS: str(columns)},
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"`wavedeck {words[0]}` ended without a reason"]
        raise Complaint(lines[-1].removeprefix("wavedeck: "))
    return done.stdout


def new_files(sessions: Sequence[str], folder: Path) -> list[Path]:
    """Return files of a report that do not exist yet; the names contain the session, or the number of sessions."""
    name = sessions[0] if len(sessions) == 1 else f"{len(sessions)}-sessions"
    stems = (f"report-{name}{'' if number == 1 else f'~{number}'}" for number in count(1))
    stem = next(
        stem for stem in stems if not any((folder / f"{stem}.{ending}").exists() for ending in ENDINGS)
    )
    return [folder / f"{stem}.{ending}" for ending in ENDINGS]


def _write(app: App[Any], home: Home, sessions: Sequence[str], files: Sequence[Path]) -> None:
    folder = files[0].parent
    try:
        run_command(home, ["report", *sessions, *(word for file in files for word in ("-o", str(file)))])
    except (OSError, Complaint) as error:
        words = f"The report was not written to {folder}: {error}"
        app.call_from_thread(app.notify, clean(words), severity="error", timeout=10, markup=False)
        return
    names = ", ".join(file.name for file in files)
    app.call_from_thread(app.notify, clean(f"Written to {folder}: {names}"), timeout=10, markup=False)
