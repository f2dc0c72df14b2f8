"""docs/data.md: every command of its how-to prints a result on a real store, and its table has every event."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import get_args

import msgspec

from sessions import Home, record_at_rest
from sessions import events as ev
from sessions.settings import RunSettings
from tests.support.sessions.story import SESSION

PAGE = Path(__file__).parents[3] / "docs" / "data.md"


def test_commands_that_read_a_session_work(copied_home: Home) -> None:
    record_at_rest(
        copied_home, SESSION, ev.DecisionMade(attempt="softmax#2/3", accepted=True, why="fast", by="ada")
    )
    table = PAGE.read_text(encoding="utf-8").partition("## Read a session")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    commands = [command for row in rows for command in re.findall(r"`([^`]+)`", row)]
    assert len(commands) > 10
    # Only failed attempts have a trace and a reflection, so these commands use the failed attempt two commits back.
    names = f"S={SESSION}; B=$S/starter/softmax/2"
    for command in commands:
        at = f"{names}~2; " if "trace.txt" in command or "reflection.md" in command else f"{names}; "
        done = subprocess.run(
            ["bash", "-euc", at + command],
            cwd=copied_home.store,
            # Bash warns about a locale that is not installed.
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout.strip(), command


def test_table_of_events_has_every_event_with_its_fields() -> None:
    rows: dict[str, set[str]] = {}
    for row in re.findall(r"^\| (`\w+`.*) \| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        names = set(re.findall(r"\w+", row[1]))
        rows |= {tag + dot: names for tag, dot in re.findall(r"`(\w+)`( ●)?", row[0])}
    for event in get_args(ev.AnyEvent):
        fields = {field.encode_name for field in msgspec.structs.fields(event)}
        if event is ev.SessionStarted:
            # Its line in the journal has the fields of the settings beside the others.
            fields = fields - {"settings"} | {*RunSettings.__struct_fields__}
        tag = event.__struct_config__.tag + (" ●" if issubclass(event, ev.DurableEvent) else "")
        assert fields - {*ev.Event.__struct_fields__} <= rows.get(tag, set()), tag
