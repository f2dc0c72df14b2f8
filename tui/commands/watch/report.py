"""`wavedeck report`: what is faster in sessions, and their metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from sessions.catalog import LATEST
from tui.commands.files import write_document
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, printable, say
from tui.facts.report import SessionReport, report_of
from tui.print.plain import emit, emit_json, json_document
from tui.print.report_pages import as_csv, as_html, as_markdown, as_text

FORMATS = ("table", "md", "html", "json", "csv")
ENDINGS = {".txt": "table", ".md": "md", ".html": "html", ".json": "json", ".csv": "csv"}
PAGES = {"table": as_text, "md": as_markdown, "html": as_html, "csv": as_csv}


@click.command(name="report")
@click.argument("sessions", nargs=-1, metavar="[SESSION|STUDY|PACK]...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the report. [by the ending of FILE, else table]",
    show_choices=True,
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the report to FILE: .txt, .md, .html, .json or .csv. An existing file is replaced.",
)
def report_command(sessions: tuple[str, ...], *, form: str | None, output: Path | None) -> None:
    """Report what is faster in SESSIONs: the winner of each task, its cases, why it is fast, and where its kernel lies.

    Without SESSION, the report is of the newest session; a STUDY, or the file of a packed study, gives all its
    sessions. Then come the attempts of each instance, verdicts, decisions of people, cost, and the field's metrics.
    Speedups are measured; without a GPU the report has estimates, in a table of their own. Several sessions also get one
    table of all winners. `md` and `html` say the same as `table`; `json` and `csv` have the metrics by task.
    """
    form = form or ("table" if output is None else _form_of(output))
    reports = []
    for opened in open_sessions(sessions or (LATEST,)):
        report = report_of(opened.state)
        if report.metrics:
            reports.append(report)
        else:
            say(f"session {opened.name} names no tasks: nothing to report")
    if output is not None:
        _write(output, reports, form)
    elif form == "json":
        emit_json(_metrics(reports))
    else:
        emit(PAGES[form](reports))


def _form_of(file: Path) -> str:
    form = ENDINGS.get(file.suffix.lower())
    if form is None:
        raise Complaint(
            f"no format has the ending of {file.name}; use {', '.join(ENDINGS)}, or name the format with --format"
        )
    return form


def _write(file: Path, reports: Sequence[SessionReport], form: str) -> None:
    """Write the whole report to a file, or leave the file as it was."""
    if form == "json":
        data = json_document(_metrics(reports), indented=True)
    else:
        data = printable(PAGES[form](reports)).encode("utf-8", errors="replace")
    write_document(file, data + b"\n", "the report")
    say(f"the report is in {file}")


def _metrics(reports: Sequence[SessionReport]) -> list[object]:
    return [row for report in reports for row in report.metrics]
