"""`wavedeck attach`: come back to a running session."""

from __future__ import annotations

import asyncio
import os

import click

from sessions.catalog import find_session, session_state
from sessions.home import Home, home_from
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, ExitCode
from tui.facts.vocabulary import next_command
from tui.print.follow import print_until_end
from tui.print.plain import interactive


@click.command(name="attach")
@click.argument("session", required=False, shell_complete=complete_sessions)
@click.option("--readonly", is_flag=True, help="Watch only; no decisions.")
def attach_command(session: str | None, *, readonly: bool) -> ExitCode:
    """Come back to a running SESSION (by default the newest).

    Without a terminal: print its events as lines until it ends; Ctrl-C leaves it running.
    """
    home = home_from(os.environ)
    name = running_session(home, session)
    if interactive(os.environ):
        from tui.commands.look.cockpit import open_cockpit

        return open_cockpit(os.environ, session=name, mode="live", readonly=readonly)
    return asyncio.run(print_until_end(home, name, as_json=False, stoppable=False))


def running_session(home: Home, wanted: str | None) -> str:
    """Return the running session to attach to. Raises `Complaint` with the next command if it is not running."""
    if wanted is None:
        running = [files.session for files in home.session_folders() if files.running]
        if not running:
            raise Complaint(
                "no session is running; start one with `wavedeck run`, list them with `wavedeck sessions`"
            )
        return max(running)
    name = find_session(home, wanted)
    if not home.files(name).running:
        is_stored = home.files(name).stored
        finished = is_stored and session_state(home, name).finished
        action = "see it" if finished else "go on"
        raise Complaint(
            f"session {name} is not running; {action} with `{next_command(name, finished=finished)}`"
        )
    return name
