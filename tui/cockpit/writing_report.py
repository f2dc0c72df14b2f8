"""Writes reports from a screen, in a thread, and says where they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App

from tui.cockpit.lines import clean
from tui.report import SessionReport
from tui.report.files import write_report


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


def _write(app: App[Any], reports: Sequence[SessionReport], folder: Path) -> None:
    try:
        files = write_report(reports, folder)
    except OSError as error:
        words = f"The report was not written to {folder}: {error.strerror or error}"
        app.call_from_thread(app.notify, clean(words), severity="error", timeout=10, markup=False)
        return
    names = ", ".join(file.name for file in files)
    app.call_from_thread(app.notify, clean(f"Written to {folder}: {names}"), timeout=10, markup=False)
