"""`wavedeck report`: what is faster in sessions, and the tables of the field over all of them."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sessions.catalog import LATEST
from sessions.home import home_from
from suites.errors import nearest
from tui.commands.files import write_document
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, printable, say
from tui.facts.report.document import Document
from tui.facts.report.reading import ReportReader
from tui.facts.report.tables import TABLES
from tui.facts.vocabulary import counted
from tui.print.plain import emit, emit_json, json_document
from tui.print.report import PAGES, document_data, table_csv, table_data

ENDINGS = {".txt": "table", ".md": "md", ".tex": "tex", ".html": "html", ".json": "json", ".csv": "csv"}
FORMATS = tuple(ENDINGS.values())
DATA = ("json", "csv")
MORE = (
    "tables without data are left out. Cases, attempts and reasons of a winner: wavedeck report SESSION; "
    "similarity of kernels: --table contamination; kernels and decisions: -o page.html"
)
"""Names the commands for parts that the text of several sessions leaves out."""


@click.command(name="report")
@click.argument("sessions", nargs=-1, metavar="[SESSION|STUDY]...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the report. [by the ending of FILE, else table]",
    show_choices=True,
)
@click.option("--table", metavar="NAME", help=f"One table alone: {', '.join(TABLES)}.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Write the report to FILE: {', '.join(ENDINGS)}. An existing file is replaced.",
)
def report_command(
    sessions: tuple[str, ...], *, form: str | None, table: str | None, output: Path | None
) -> None:
    """Report what is faster in SESSIONs: the winner of each task, its cases, why it is fast, and where its kernel lies.

    Without SESSION, the report is of the newest session; a STUDY gives all its sessions.
    After the winners come the attempts of each instance, verdicts, decisions of people, cost, and the field's metrics.
    Without a GPU no time is measured, and the report has none. The report of several sessions
    has the tables over all their attempts. Tables without data are left out. All formats say the same; `csv` has one table,
    or the metrics by task, and `html` also the kernels of the winners.
    """
    form = form or ("table" if output is None else _form_of(output))
    if table is not None and table not in TABLES:
        raise Complaint(
            f"no table is called {table!r}{nearest(table, TABLES)}; there are: {', '.join(TABLES)}"
        )
    opened = open_sessions(sessions or (LATEST,))
    reader = ReportReader(opened, home_from(os.environ).suites, lambda session: session.rows)
    if table is not None:
        section = reader.table(table)
        if not section.rows:
            raise Complaint(
                f"table {table!r} has no data in {counted(len(opened), 'session')}; leave out --table to see all"
            )
        document = Document(section.title, {}, (section,))
    else:
        document = reader.document(kernels=form == "html", metrics=form in DATA)
        if len(opened) == 1 and not document.metrics:
            say(f"session {opened[0].name} names no tasks: nothing to report")
    if form == "json":
        data = document_data(document) if table is None else table_data(document.sections[0])
        if output is None:
            emit_json(data)
        else:
            _write(output, json_document(data, indented=True))
        return
    page = table_csv(document.sections[0]) if form == "csv" and table else PAGES[form](document)
    if output is None:
        emit(page)
        if form == "table" and table is None and len(opened) > 1:
            say(MORE)
    else:
        _write(output, printable(page).encode("utf-8", errors="replace"))


def _form_of(file: Path) -> str:
    form = ENDINGS.get(file.suffix.lower())
    if form is None:
        raise Complaint(
            f"no format has the ending of {file.name}; use {', '.join(ENDINGS)}, or name the format with --format"
        )
    return form


def _write(file: Path, data: bytes) -> None:
    write_document(file, data + b"\n", "the report")
    say(f"the report is in {file}")
