"""Writes reports to files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sessions.files import write_whole
from tui.reporting import as_csv

from .model import SessionReport
from .texts import as_html, as_markdown


def write_report(reports: Sequence[SessionReport], folder: Path) -> tuple[Path, ...]:
    """
    Write Markdown, HTML and the CSV of the metrics into a folder; return the files.

    The names contain the session, or the number of sessions. Files of an earlier report are replaced.
    """
    name = reports[0].summary.session if len(reports) == 1 else f"{len(reports)}-sessions"
    texts = {
        "md": as_markdown(reports),
        "html": as_html(reports),
        "csv": as_csv([report.metrics for report in reports]),
    }
    files = []
    for ending, text in texts.items():
        file = folder / f"report-{name}.{ending}"
        write_whole(file, f"{text}\n".encode("utf-8", "replace"))
        files.append(file)
    return tuple(files)
