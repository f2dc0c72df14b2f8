"""`wavedeck report`: the metrics of sessions."""

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
    help="Format of the report. [table]",
    show_choices=True,
)
def report_command(sessions: tuple[str, ...], *, form: str) -> None:
    """Report the metrics of SESSIONs by task: call and execution accuracy, pass@k, speedups, tokens, cost.

    Attempts without a counted verdict are only shown in brackets. Speedups are from measured attempts; on device cpu
    there are none. pass@k counts instances: an instance is correct if any of its attempts is correct. All metrics use
    the open cases. `exam` is the result of the best attempt on the exam cases, which no model sees.
    """
    home = home_from(os.environ)
    reports = []
    for prefix in dict.fromkeys(sessions):
        name = find_session(home, prefix)
        report = rows(fold(journal_of(home, name).events))
        if report:
            reports.append(report)
        else:
            say(f"session {name} names no tasks: nothing to report")
    match form:
        case "json":
            emit_json([row for report in reports for row in report])
        case "csv":
            emit(as_csv(reports))
        case "md":
            emit(as_markdown(reports))
        case _:
            emit(as_table(reports))
