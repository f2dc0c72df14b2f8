"""`wavedeck doctor`: check this machine."""

from __future__ import annotations

import click

from engine.keys import environment_with_keys
from tui.commands.options import json_option
from tui.doctor.doctor_findings import page, tally
from tui.doctor.examination import examine
from tui.plain import emit, emit_json


@click.command(name="doctor")
@json_option
def doctor_command(*, as_json: bool) -> None:
    """Check what this machine can run: GPUs, judge, sandbox, keys, store, terminal.

    Always exits with 0. Keys are shown by name, never by value.
    """
    if as_json:
        emit_json({"schema": 1, "sections": list(examine(environment_with_keys()))})
        return
    sections = []
    for section in examine(environment_with_keys()):
        emit(page(section) + "\n")
        sections.append(section)
    emit(tally(sections))
