"""`wavedeck` alone: the app, or without a terminal the list of sessions and what to do next."""

from __future__ import annotations

from collections.abc import Mapping

from sessions.catalog import Standing, list_sessions
from sessions.home import home_from
from tui.commands.sessions import next_for, sessions_table
from tui.diagnostics import ExitCode
from tui.plain import emit, interactive


def open_home(environ: Mapping[str, str]) -> ExitCode:
    """The app at its home screen; what it lists, where it cannot be drawn."""
    if interactive(environ):
        from tui.commands.cockpit import open_cockpit

        return open_cockpit(environ, session=None, mode="home")
    home = home_from(environ)
    known = list_sessions(home)
    if not known:
        emit(f"no sessions yet in {home.root}")
        emit("begin with: wavedeck run            what this machine has: wavedeck doctor")
        return ExitCode.DONE
    emit(sessions_table(known))
    newest = next((each for each in known if each.state is Standing.RUNNING), known[0])
    emit(f"\nnext: {next_for(newest)}")
    return ExitCode.DONE
