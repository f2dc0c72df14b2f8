"""Writes reports from the cockpit and says where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tui.report import SessionReport
from tui.report.files import write_report


class Note(NamedTuple):
    """What to say to the person."""

    text: str
    failed: bool


def write_files(reports: Sequence[SessionReport], folder: Path) -> Note:
    """Write the reports into a folder; blocks."""
    try:
        files = write_report(reports, folder)
    except OSError as error:
        return Note(f"The report was not written to {folder}: {error.strerror or error}", failed=True)
    return Note(f"Written to {folder}: {', '.join(file.name for file in files)}", failed=False)
