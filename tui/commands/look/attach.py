"""`wavedeck attach`: come back to a running session."""

from __future__ import annotations

import asyncio
import os

import click

from sessions.catalog import Standing, session_info
from tui.commands.opening import OpenedSession, open_session
from tui.commands.options import session_argument
from tui.diagnostics import Complaint, ExitCode
from tui.facts.vocabulary import next_command
from tui.print.follow import print_until_end
from tui.print.plain import interactive


@click.command(name="attach")
@session_argument
@click.option("--readonly", is_flag=True, help="Watch only; no decisions.")
def attach_command(session: str | None, *, readonly: bool) -> ExitCode:
    """Come back to a running SESSION, by default the newest.

    Without a terminal: print its events as lines until it ends; Ctrl-C leaves it running.
    """
    home, name = running_session(session)
    if interactive(os.environ):
        from tui.commands.look.cockpit import open_cockpit

        return open_cockpit(os.environ, session=name, mode="live", readonly=readonly)
    return asyncio.run(print_until_end(home, name, as_json=False, stoppable=False))


def running_session(wanted: str | None) -> OpenedSession:
    """Return the running session to attach to. Raises `Complaint` with the next command if it is not running."""
    opened = open_session(wanted, newest=True)
    if not opened.home.files(opened.name).running:
        info = session_info(opened.home, opened.name)
        finished = info is not None and info.state is Standing.FINISHED
        action = "see it" if finished else "go on"
        raise Complaint(
            f"session {opened.name} is not running; {action} with: {next_command(opened.name, finished=finished)}"
        )
    return opened
