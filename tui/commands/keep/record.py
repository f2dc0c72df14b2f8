"""`wavedeck sessions record`: make a recording from finished sessions."""

from __future__ import annotations

import os

import click

from sessions.home import home_from
from sessions.recording import write_recording
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, say


@click.command("record")
@click.argument(
    "sessions", nargs=-1, required=True, metavar="SESSION|STUDY...", shell_complete=complete_sessions
)
@click.argument("name")
def record_command(sessions: tuple[str, ...], name: str) -> None:
    """Make the recording NAME from finished SESSIONs.

    A run with --model recorded:NAME gets their replies again, at no cost. With several sessions, or a study, the chains on
    each task are numbered in the order given.
    """
    home = home_from(os.environ)
    home.ensure()
    opened = [session for word in sessions for session in open_sessions([word])]
    if twice := next((session.name for session in opened if opened.count(session) > 1), None):
        raise Complaint(f"{twice} is named twice; a recording holds each chain only once")
    folder = write_recording([session.state for session in opened], name, home.recordings)
    say(f"recorded in {folder}; play it with: wavedeck run --model recorded:{name}")
