"""`O`: an attempt, or reports, as files in the current folder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from textual.app import App

from sessions.kept_kernels import KeptKernel
from suites import Task
from tui.cockpit.draw.lines import clean
from tui.facts.report import SessionReport
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


def write_new(path: Path, text: str) -> Path:
    """Write a text to this file, or to one with a number before its suffix if it exists; returns the file."""
    for number in count(2):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text if text.endswith("\n") else f"{text}\n")
        except FileExistsError:
            path = path.with_stem(f"{path.stem.rpartition('~')[0] or path.stem}~{number}")
        else:
            return path
    raise AssertionError("there is always a further number")


def write_reports(app: App[Any], reports: Sequence[SessionReport], registry: Path | None) -> None:
    """Write Markdown, HTML and CSV into the current folder; a note says where they are, or why they are not.

    `registry` names the suites that people added.
    """
    app.run_worker(
        partial(_write, app, reports, Path.cwd(), registry),
        name="writing the report",
        group="write",
        exclusive=True,
        thread=True,
        exit_on_error=False,
    )


def write_files(reports: Sequence[SessionReport], folder: Path, registry: Path | None = None) -> list[Path]:
    """
    Write Markdown, HTML and the CSV of the metrics to new files; return them.

    The names contain the session, or the number of sessions. Raises `OSError` if the folder cannot be written.
    """
    # Imported here: the app starts without the tables and pages of reports.
    from tui.facts.report.reading import ReportReader
    from tui.print.report import as_html, as_markdown, metrics_csv

    name = reports[0].session if len(reports) == 1 else f"{len(reports)}-sessions"
    document = ReportReader(reports, registry).document(kernels=True, metrics=True)
    texts = {"md": as_markdown(document), "html": as_html(document), "csv": metrics_csv(document)}
    return [write_new(folder / f"report-{name}.{ending}", text) for ending, text in texts.items()]


def _write(app: App[Any], reports: Sequence[SessionReport], folder: Path, registry: Path | None) -> None:
    try:
        files = write_files(reports, folder, registry)
    except OSError as error:
        words = f"The report was not written to {folder}: {error.strerror or error}"
        app.call_from_thread(app.notify, clean(words), severity="error", timeout=10, markup=False)
        return
    names = ", ".join(file.name for file in files)
    app.call_from_thread(app.notify, clean(f"Written to {folder}: {names}"), timeout=10, markup=False)
