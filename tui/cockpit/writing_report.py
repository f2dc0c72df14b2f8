"""Writes reports from a screen, in a thread, and says where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App

from tui.cockpit.lines import clean
from tui.cockpit.writing import write_new
from tui.facts.report import SessionReport
from tui.print.report_pages import as_csv, as_html, as_markdown


def write_reports(app: App[Any], reports: Sequence[SessionReport]) -> None:
    """Write Markdown, HTML and CSV into the current folder; a note says where they are, or why they are not."""
    app.run_worker(
        partial(_write, app, reports, Path.cwd()),
        name="writing the report",
        group="write",
        exclusive=True,
        thread=True,
        exit_on_error=False,
    )


def write_files(reports: Sequence[SessionReport], folder: Path) -> list[Path]:
    """
    Write Markdown, HTML and the CSV of the metrics to new files; return them.

    The names contain the session, or the number of sessions. Raises `OSError` if the folder cannot be written.
    """
    name = reports[0].summary.session if len(reports) == 1 else f"{len(reports)}-sessions"
    texts = {
        "md": as_markdown(reports),
        "html": as_html(reports),
        "csv": as_csv(reports),
    }
    return [write_new(folder / f"report-{name}.{ending}", text) for ending, text in texts.items()]


def _write(app: App[Any], reports: Sequence[SessionReport], folder: Path) -> None:
    try:
        files = write_files(reports, folder)
    except OSError as error:
        words = f"The report was not written to {folder}: {error.strerror or error}"
        app.call_from_thread(app.notify, clean(words), severity="error", timeout=10, markup=False)
        return
    names = ", ".join(file.name for file in files)
    app.call_from_thread(app.notify, clean(f"Written to {folder}: {names}"), timeout=10, markup=False)
