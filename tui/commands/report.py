"""`wavedeck report`: what sessions have to show, in the field's metrics."""

from __future__ import annotations

import os

import click

from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import home_from
from tui.commands.options import complete_sessions
from tui.diagnostics import say
from tui.plain import emit, emit_json
from tui.reporting import as_csv, as_markdown, as_table, rows

FORMATS = ("table", "md", "json", "csv")


@click.command(name="report")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="table",
    help="How to tell it. [table]",
    show_choices=True,
)
def report_command(sessions: tuple[str, ...], *, form: str) -> None:
    """Tell the metrics of SESSIONs by task: call and execution accuracy, pass@k, speedups, tokens, cost.

    Attempts that the device could not judge are counted nowhere (they stand in brackets). Speedups are of measured attempts
    alone: on device cpu there are none. pass@k counts instances: one is correct when any of its attempts is. All of these go by
    the open cases; `exam` says whether the best attempt also passed the cases that no model hears of.
    """
    home = home_from(os.environ)
    told = []
    for asked in dict.fromkeys(sessions):
        name = find_session(home, asked)
        found = rows(fold(journal_of(home, name).events))
        if found:
            told.append(found)
        else:
            say(f"session {name} names no tasks: nothing to report")
    match form:
        case "json":
            emit_json([row for each in told for row in each])
        case "csv":
            emit(as_csv(told))
        case "md":
            emit(as_markdown(told))
        case _:
            emit(as_table(told))
