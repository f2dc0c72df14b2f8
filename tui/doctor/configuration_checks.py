"""Section of doctor about the configuration: its settings, and the source of each setting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tui.config import load
from tui.diagnostics import Complaint

from .doctor_findings import Finding, State


def configuration(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether the settings can be read, and the source of each setting."""
    try:
        configured = load({}, environ=environ, folder=Path.cwd())
    except Complaint as error:
        yield Finding(
            "settings", State.WARNING, str(error), "commands that read settings fail with this message"
        )
        return
    for remark in configured.remarks:
        yield Finding("environment", State.WARNING, remark)
    if not configured.origins:
        yield Finding("settings", State.OK, "none set: all defaults")
    for key, origin in configured.origins.items():
        yield Finding(key, State.OK, f"from {origin}")
