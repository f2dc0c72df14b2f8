"""`wavedeck report`: what is faster in sessions, and their metrics."""

from __future__ import annotations

import os

import click

from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import home_from
from tui.commands.options import complete_sessions
from tui.diagnostics import say
from tui.plain import emit, emit_json
from tui.report import as_html, as_markdown, as_text, report_of
from tui.reporting import as_csv

FORMATS = ("table", "md", "html", "json", "csv")


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
    """Report what is faster in SESSIONs: the winner of each task, its cases, why it is fast, and where its kernel lies.

    Then come the attempts of each instance, verdicts, cost, and the field's metrics. Speedups are measured; without a
    GPU the report has estimates, in a table of their own. Several sessions also get one table of all winners. `md` and
    `html` say the same as `table`; `json` and `csv` have the metrics by task.
    """
    home = home_from(os.environ)
    reports = []
    for prefix in dict.fromkeys(sessions):
        name = find_session(home, prefix)
        report = report_of(fold(journal_of(home, name).events))
        if report.metrics:
            reports.append(report)
        else:
            say(f"session {name} names no tasks: nothing to report")
    match form:
        case "json":
            emit_json([row for report in reports for row in report.metrics])
        case "csv":
            emit(as_csv([report.metrics for report in reports]))
        case "md":
            emit(as_markdown(reports))
        case "html":
            emit(as_html(reports))
        case _:
            emit(as_text(reports))
