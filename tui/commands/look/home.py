"""`wavedeck` without a command: the app, or without a terminal the list of sessions and the next command."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from sessions.home import Home, home_from
from sessions.home_access import readers_warning, require_private
from tui.actions.catalogue import COMMANDS
from tui.diagnostics import ExitCode, say
from tui.facts.tables import Column
from tui.print.plain import emit, interactive, table


def prepare_home(home: Home) -> None:
    """Make the missing folders of the home, for a command that starts engines; warn if other users can read the home.

    Raises `HomeNotPrivate` if other users can write into it.
    """
    require_private(home)
    home.ensure()
    if warning := readers_warning(home):
        say(f"take care: {warning}")


def open_home(environ: Mapping[str, str]) -> ExitCode:
    """Open the app at its home screen; without a terminal, print its list."""
    if interactive(environ):
        from tui.commands.look.cockpit import open_cockpit

        return open_cockpit(environ, session=None, mode="home")
    # Imported here: the cockpit starts without git.
    from sessions.catalog import Standing, list_sessions
    from tui.commands.keep.sessions import next_for, say_damaged, sessions_table

    home = home_from(environ)
    infos = list_sessions(home)
    if not infos:
        emit(f"no sessions yet in {home.root}; begin with: wavedeck run")
        emit(f"what this machine has: wavedeck doctor\n\n{groups()}")
        return ExitCode.DONE
    say_damaged(infos)
    emit(sessions_table(infos))
    newest = next((info for info in infos if info.state is Standing.RUNNING), infos[0])
    emit(f"\n{groups()}\n\nnext: {next_for(newest)}")
    return ExitCode.DONE


def groups() -> str:
    """Return the groups of commands, a line each: `decide  accept, reject, undo`."""
    by_group = groupby(COMMANDS.items(), key=lambda item: item[1].group)
    rows = [(group, ", ".join(name for name, _ in commands)) for group, commands in by_group]
    return table((Column("commands"), Column("wavedeck COMMAND --help")), rows)
