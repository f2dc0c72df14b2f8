"""`wavedeck record`: a finished session becomes a recording."""

from __future__ import annotations

import os

import click

from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import home_from
from sessions.recording import write_recording
from tui.commands.options import session_argument
from tui.diagnostics import say


@click.command(name="record")
@session_argument
@click.argument("name")
def record_command(session: str, name: str) -> None:
    """Make the recording NAME of finished SESSION: its replies can be played to the agents again, at no cost."""
    home = home_from(os.environ)
    home.ensure()
    state = fold(journal_of(home, find_session(home, session)).events)
    folder = write_recording(state, name, home.recordings)
    say(f"recorded in {folder}; play it with: wavedeck run --model recorded:{name}")
