"""`wavedeck report`: what is faster in sessions, and the tables of the field over all of them."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path

import click

from sessions.catalog import LATEST
from sessions.home import home_from
from sessions.metrics.attempts import attempts_frame, column_meanings
from suites.errors import nearest
from tui.commands.files import write_document
from tui.commands.opening import OpenedSession, open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, printable, say
from tui.facts.report.document import Document
from tui.facts.report.reading import ReportReader
from tui.facts.report.tables import TABLES
from tui.facts.tables import Column, Field
from tui.facts.vocabulary import counted
from tui.print.plain import emit, json_document, listing
from tui.print.report import PAGES, document_data, draw, plots_of

ENDINGS = {
    ".txt": "table", ".md": "md", ".tex": "tex", ".html": "html", ".json": "json", ".csv": "csv", ".svg": "svg", ".pdf": "pdf",
}  # fmt: skip
FORMATS = tuple(ENDINGS.values())
DRAWN = ("svg", "pdf")
DATA = ("json", "csv")
ATTEMPTS = "attempts"
"""Name of the table that has every attempt, for data files."""
EXTRA = "pandas", "matplotlib", "scipy"
MISSING = "needs {}, which is not installed; pip install 'wavedeck[reports]'"
MORE = (
    "tables without data are left out. Cases, attempts and reasons of a winner: wavedeck report SESSION; "
    "similarity of kernels: --table contamination; kernels: -o page.html"
)
"""Names the commands for parts that the text of several sessions leaves out."""
MEANINGS: tuple[Field[tuple[str, str, str]], ...] = (
    Field(Column("column", keep=True), lambda column: column[0]),
    Field(Column("dtype", keep=True), lambda column: column[1]),
    Field(Column("meaning"), lambda column: column[2]),
)


@click.command(name="report")
@click.argument("sessions", nargs=-1, metavar="[SESSION|STUDY]...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the report. [by the ending of FILE, else table]",
    show_choices=True,
)
@click.option(
    "--table", metavar="NAME", help=f"One table alone: {', '.join(TABLES)}, or {ATTEMPTS} as csv or json."
)
@click.option(
    "-o",
    "--out",
    "outputs",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Write the report to FILE: {', '.join(ENDINGS)}. An existing file is replaced.",
)
@click.option(
    "--best", is_flag=True, help="The fastest attempt of each task, or of the TASKs named, over all sessions."
)
@click.option("--columns", is_flag=True, help="Print what each column of the table of attempts means.")
def report_command(
    sessions: tuple[str, ...],
    *,
    form: str | None,
    table: str | None,
    outputs: tuple[Path, ...],
    best: bool,
    columns: bool,
) -> None:
    """Report what is faster in SESSIONs: the winner of each task, its cases, why it is fast, and where its kernel lies.

    By default of the newest session. Then come the attempts of each instance, verdicts, decisions of people, cost, and the
    field's metrics. The report of several sessions has the tables over all their attempts. Tables without data are left out.
    `csv` has one table, by default all attempts; `html` also the kernels of the winners; `svg` and `pdf` the plots alone.

    With --best, a task has a line for each baseline and each product, partition, driver, torch and Triton. It also has
    kernels of people, tasks with a weak oracle, and the times of `recheck --attempts`.
    """
    if best:
        if table or outputs or form not in (None, "table", "json"):
            raise Complaint("--best is printed as --format table or json, without --table and -o")
        from .best import print_bests  # loads methods, which no report needs

        print_bests(sessions, as_json=form == "json")
        return
    if columns:
        emit(listing(MEANINGS, column_meanings()))
        return
    if table is not None and table not in (*TABLES, ATTEMPTS):
        raise Complaint(
            f"no table is called {table!r}{nearest(table, TABLES)}; there are: {', '.join(TABLES)}"
        )
    forms = [form or _form_of(output) for output in outputs] or [form or "table"]
    opened = open_sessions(sessions or (LATEST,))
    missing = [name for name in EXTRA if find_spec(name) is None]
    if missing and (subject := _needs_extra(table, forms, len(opened))):
        raise Complaint(f"{subject} {MISSING.format(missing[0])}")
    if forms[0] in DRAWN and not outputs:
        raise Complaint(f"{forms[0]} is no text; write it to a file with -o plots.{forms[0]}")
    reader = ReportReader(opened, home_from(os.environ).suites, lambda session: session.rows)
    of_attempts = forms if table == ATTEMPTS else [form for form in forms if form == "csv" and table is None]
    pages = {form: _attempts_page(reader, form) for form in of_attempts}
    if rest := [form for form in forms if form not in pages]:
        document = _document(reader, table, forms, len(opened), tables=not missing)
        pages |= {form: _page(document, form) for form in rest}
    if not any(pages.values()):
        raise Complaint("there is no plot: nothing was timed")
    for output, form in zip(outputs, forms, strict=False):
        if not pages[form]:
            say(f"{output} is left out: there is no plot, because nothing was timed")
            continue
        write_document(output, pages[form] + b"\n", "the report")
        say(f"the report is in {output}")
    if not outputs:
        emit(pages[forms[0]].decode())
        if missing:
            say(
                f"the tables by method, iteration and hardware are left out: they {MISSING.format(missing[0]).replace('needs', 'need')}"
            )
        elif forms == ["table"] and table is None and len(opened) > 1:
            say(MORE)


def _needs_extra(table: str | None, forms: list[str], sessions: int) -> str:
    """Return the part of a command that needs the extra; empty for the text of one session."""
    if table is not None:
        return f"--table {table}"
    form = next((form for form in forms if form != "table"), "")
    return f"the format {form}" if form else "the report of several sessions" if sessions > 1 else ""


def _document(
    reader: ReportReader[OpenedSession], table: str | None, forms: list[str], sessions: int, *, tables: bool
) -> Document:
    if table is None:
        return reader.document(tables=tables, kernels="html" in forms)
    section = reader.table(table)
    if not section.rows:
        raise Complaint(
            f"table {table!r} has no data in {counted(sessions, 'session')}; leave out --table to see all"
        )
    return Document(section.title, {}, (section,))


def _page(document: Document, form: str) -> bytes:
    """Return the document in a format; empty if it has nothing to draw."""
    if form == "json":
        return json_document(document_data(document), indented=True)
    if form not in DRAWN:
        return printable(PAGES[form](document)).encode("utf-8", errors="replace")
    plots = plots_of(document)
    return draw(plots, form) if plots else b""


def _attempts_page(reader: ReportReader[OpenedSession], form: str) -> bytes:
    """Return every attempt with every column of `--columns`, as pandas writes it."""
    if form not in DATA:
        raise Complaint(f"the table {ATTEMPTS} is for programs; add --format csv or --format json")
    attempts = reader.attempts()
    frame = attempts_frame(attempts.rows, attempts.kinds)
    if form == "csv":
        return str(frame.to_csv(index=False)).rstrip().encode()
    rows = json.loads(frame.to_json(orient="records"))
    data = {"table": ATTEMPTS, "title": "Attempts", "notes": (), "rows": rows}
    return json_document({"schema": 3, "title": "Attempts", "facts": {}, "tables": [data]}, indented=True)


def _form_of(file: Path) -> str:
    form = ENDINGS.get(file.suffix.lower())
    if form is None:
        raise Complaint(
            f"no format has the ending of {file.name}; use {', '.join(ENDINGS)}, or name the format with --format"
        )
    return form
