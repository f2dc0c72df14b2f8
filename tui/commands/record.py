"""`wavedeck record`: finished sessions become a recording."""

from __future__ import annotations

import os

import click

from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import home_from
from sessions.recording import record_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, say


@click.command(name="record")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
@click.argument("name")
def record_command(sessions: tuple[str, ...], name: str) -> None:
    """Make the recording NAME of finished SESSIONs: their replies can be played to the agents again, at no cost.

    Of several sessions, as the rows of an ablation, the chains on each task are numbered on in the order given.
    """
    home = home_from(os.environ)
    home.ensure()
    names = [find_session(home, each) for each in sessions]
    if twice := next((each for each in names if names.count(each) > 1), None):
        raise Complaint(f"{twice} is named twice; its chains can be in a recording once")
    folder = record_sessions([fold(journal_of(home, each).events) for each in names], name, home.recordings)
    say(f"recorded in {folder}; play it with: wavedeck run --model recorded:{name}")
