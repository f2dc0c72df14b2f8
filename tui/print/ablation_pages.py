"""An ablation as a printed table, as Markdown and as CSV."""

from __future__ import annotations

import msgspec

from sessions.catalog import Standing
from sessions.names import short_task
from tui.facts.ablation import AblationReport, ReportContribution, ReportRow
from tui.facts.report.metrics import ratio
from tui.facts.tables import Column, Field, columns_of
from tui.facts.vocabulary import grouped, money

from .plain import csv_page, listing, markdown_table, texts_of, wrapped

ROWS: tuple[Field[ReportRow], ...] = (
    Field(Column("row", right=True), lambda row: str(row.row)),
    Field(Column("knowledge", keep=True), lambda row: switch(on=row.knowledge)),
    Field(Column("one-shot", keep=True), lambda row: switch(on=row.one_shot)),
    Field(Column("optimizer", keep=True), lambda row: switch(on=row.optimizer)),
    Field(Column("reflection", keep=True), lambda row: switch(on=row.reflection)),
    Field(Column("n", right=True), lambda row: str(row.instances)),
    Field(Column("call", right=True), lambda row: share(row.call_accuracy)),
    Field(Column("exec", right=True), lambda row: share(row.execution_accuracy)),
    Field(
        Column("95 %", right=True),
        lambda row: (
            "" if row.execution_low is None else f"{share(row.execution_low)}-{share(row.execution_high)}"
        ),
    ),
    Field(Column("confirmed", right=True, if_known=True, drop=1), lambda row: grouped(row.confirmed)),
    Field(
        Column("speedup", right=True, if_known=True), lambda row: ratio(row.speedup_mean, row.speedup_sign)
    ),
    Field(
        Column("geomean", right=True, if_known=True), lambda row: ratio(row.speedup_geomean, row.speedup_sign)
    ),
    Field(
        Column("attempts", right=True, drop=2),
        lambda row: (
            f"{row.attempts_correct}/{row.attempts}" + (f" (+{row.uncounted})" if row.uncounted else "")
        ),
    ),
    Field(Column("tokens in", right=True, drop=3), lambda row: grouped(row.input_tokens)),
    Field(Column("out", right=True, drop=4), lambda row: grouped(row.output_tokens)),
    Field(Column("cost", right=True, if_known=True, drop=5), lambda row: money(row.cost_usd)),
)
CONTRIBUTIONS: tuple[Field[ReportContribution], ...] = (
    Field(Column("module", keep=True), lambda added: added.module),
    Field(Column("added to"), lambda added: added.to),
    Field(Column("rows", right=True), lambda added: f"{added.row_on} - {added.row_off}"),
    Field(Column("exec", right=True), lambda added: points(added.difference)),
    Field(
        Column("95 %", right=True),
        lambda added: "" if added.low is None else f"{points(added.low)} to {points(added.high)}",
    ),
    Field(
        Column("", keep=True),
        lambda added: "not known yet" if added.low is None else "" if added.resolved else "not resolved",
    ),
)
SESSIONS: tuple[Field[ReportRow], ...] = (
    Field(Column("row", right=True), lambda row: str(row.row)),
    Field(Column("session", keep=True), lambda row: row.session or ""),
    Field(Column("state", keep=True), lambda row: row.state),
    Field(Column("remark", if_known=True), lambda row: remark(row)),
)


def switch(*, on: bool) -> str:
    """Return whether a module is on."""
    return "on" if on else "off"


def points(difference: float | None) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return "" if difference is None else f"{100 * difference:+.0f}"


def share(value: float | None) -> str:
    """Return a share in percent, without a space: `61%`."""
    return "" if value is None else f"{value:.0%}"


def remark(row: ReportRow) -> str:
    """Return why a row did not finish, and which instances ended before their method was done."""
    early = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in row.ended_early.items())
    return "; ".join(filter(None, (row.why, f"ended early: {early}" if early else "")))


def legend(report: AblationReport) -> list[str]:
    """Return the lines that explain the figures and their limits."""
    lines = [
        "n: instances with a counted verdict. call, exec: shares of n with an attempt that runs, and with a correct attempt.",
        "95 %: Wilson's interval of exec. For a difference of exec, in points: Newcombe's; it resolves nothing if it contains 0.",
        "attempts: correct / judged. Verdicts are from the open cases; the intervals hold for these tasks alone.",
    ]
    partial = [str(row.row) for row in report.rows if row.instances and row.state != Standing.FINISHED]
    if partial:
        lines.append(f"Not finished, figures so far: row {', '.join(partial)}.")
    correct = sum(row.correct for row in report.rows)
    timed = sum(row.timed for row in report.rows)
    if correct and not timed:
        lines.append(f"No speedups: nothing is timed on device {', '.join(report.devices)}.")
    elif timed < correct:
        lines.append(f"Speedups cover the {timed} of {correct} solved instances with a timed best attempt.")
    names = list(dict.fromkeys(row.against for row in report.rows if row.against))
    if names:
        lines.append(f"Speedups are against {', '.join(names)}.")
    if report.model.startswith("recorded:"):
        lines.append("Tokens are as recorded; nothing was spent.")
    return lines


def heading(report: AblationReport) -> str:
    """Return the plan of the ablation on one line."""
    tasks = ", ".join(map(short_task, report.tasks))
    options = f" ({report.options})" if report.options else ""
    return (
        f"{report.ablation}: {report.method}{options} with {report.model} on {', '.join(report.devices)}, "
        f"seed {report.seed}; {tasks}; instances {report.instances}, iterations {report.iterations}"
    )


def as_table(report: AblationReport) -> str:
    """Return plain tables of rows, modules and sessions, with the legend below."""
    parts = [
        wrapped(heading(report)),
        listing(ROWS, report.rows, indent=2),
        listing(CONTRIBUTIONS, report.contributions, indent=2),
        listing(SESSIONS, report.rows, indent=2),
        wrapped("\n".join(legend(report))),
    ]
    return "\n\n".join(parts)


def as_markdown(report: AblationReport) -> str:
    """Return the same tables in GitHub's Markdown."""
    parts = [
        f"### {report.ablation}",
        heading(report),
        markdown_table(columns_of(ROWS), texts_of(ROWS, report.rows)),
        markdown_table(columns_of(CONTRIBUTIONS), texts_of(CONTRIBUTIONS, report.contributions)),
        markdown_table(columns_of(SESSIONS), texts_of(SESSIONS, report.rows)),
        *legend(report),
    ]
    return "\n\n".join(parts)


def as_csv(report: AblationReport) -> str:
    """Return every field of every row as CSV; an unknown value is an empty cell."""
    rows = []
    for row in report.rows:
        values = (
            "; ".join(f"{number} {reason}" for reason, number in value.items())
            if isinstance(value, dict)
            else value
            for value in msgspec.structs.astuple(row)
        )
        rows.append((report.ablation, report.method, report.model, *values))
    return csv_page(("ablation", "method", "model", *ReportRow.__struct_fields__), rows)
