"""`wavedeck sessions push` and `fetch`: sessions in another git repository."""

from __future__ import annotations

import os
import time

import click

from sessions.catalog import find_session
from sessions.home import home_from
from sessions.store.sharing import SharedSessions, fetch_sessions, push_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import say
from tui.facts.vocabulary import counted

QUIET_S = 1.0
"""Seconds before the first line of progress, and between two lines."""


class GitProgress:
    """Prints git's progress on standard error, at most one line a second; nothing for what is done at once."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._shown = time.monotonic()
        self._hint = "; Ctrl-C stops it, and the same command goes on"

    def __call__(self, line: str) -> None:
        """Print the line if the last one is old enough."""
        now = time.monotonic()
        if now - self._shown >= QUIET_S:
            say(f"{self._action}: {line}{self._hint}")
            self._shown, self._hint = now, ""


@click.command("push")
@click.argument("remote")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=complete_sessions)
def push_command(remote: str, sessions: tuple[str, ...]) -> None:
    """Push SESSIONs (by default all) to REMOTE, the path or URL of a git repository.

    Of a running session, the part that is in the store. A branch that REMOTE has with other commits is refused.
    """
    home = home_from(os.environ)
    names = [find_session(home, session) for session in sessions]
    shared = push_sessions(home, remote, names, on_progress=GitProgress(f"push to {remote}"))
    say(result_words("pushed", shared, f"{remote} has"))


@click.command("fetch")
@click.argument("remote")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
def fetch_command(remote: str, sessions: tuple[str, ...]) -> None:
    """Fetch SESSIONs (by default all) from REMOTE, the path or URL of a git repository with sessions.

    A branch that the store has with other commits is refused. Fetched sessions are listed, replayed and reported.
    """
    home = home_from(os.environ)
    shared = fetch_sessions(home, remote, sessions, on_progress=GitProgress(f"fetch from {remote}"))
    say(result_words("fetched", shared, "the store has"))


def result_words(verb: str, shared: SharedSessions, owner: str) -> str:
    """Return `pushed 2 sessions: A, B; node:store has 3 sessions already`."""
    parts = [
        f"{verb} {counted(len(shared.sessions), 'session')}: {', '.join(shared.sessions)}"
        if shared.sessions
        else f"{verb} nothing",
        f"{owner} {counted(len(shared.unchanged), 'session')} already" if shared.unchanged else "",
    ]
    return "; ".join(filter(None, parts))
