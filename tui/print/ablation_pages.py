"""An ablation as a printed table, as Markdown and as CSV."""

from __future__ import annotations

import msgspec

from sessions.catalog import Standing
from sessions.names import short_task
from tui.facts.ablation import AblationReport, ReportContribution, ReportRow
from tui.facts.report.metrics import ratio
from tui.facts.tables import Column
from tui.facts.vocabulary import UNKNOWN, grouped, money

from .plain import csv_page, markdown_table, table, wrapped

ROW_HEADS = (
    Column("row", right=True),
    Column("knowledge", keep=True),
    Column("one-shot", keep=True),
    Column("optimizer", keep=True),
    Column("reflection", keep=True),
    Column("n", right=True),
    Column("call", right=True),
    Column("exec", right=True),
    Column("95 %", right=True),
    Column("confirmed", right=True, if_known=True, drop=1),
    Column("speedup", right=True, if_known=True),
    Column("geomean", right=True, if_known=True),
    Column("attempts", right=True, drop=2),
    Column("tokens in", right=True, drop=3),
    Column("out", right=True, drop=4),
    Column("cost", right=True, if_known=True, drop=5),
)
CONTRIBUTION_HEADS = (
    Column("module", keep=True),
    Column("added to"),
    Column("rows", right=True),
    Column("exec", right=True),
    Column("95 %", right=True),
    Column("", keep=True),
)
SESSION_HEADS = (
    Column("row", right=True),
    Column("session", keep=True),
    Column("state", keep=True),
    Column("remark", if_known=True),
)


def row_cells(row: ReportRow) -> tuple[str, ...]:
    """Return the cells of a row, in the order of `ROW_HEADS`."""
    marks = ("on" if on else "off" for on in (row.knowledge, row.one_shot, row.optimizer, row.reflection))
    left_out = f" (+{row.uncounted})" if row.uncounted else ""
    interval = (
        f"{row.execution_low:.0%}-{row.execution_high:.0%}"
        if row.execution_low is not None and row.execution_high is not None
        else UNKNOWN
    )
    return (
        str(row.row),
        *marks,
        str(row.instances),
        share(row.call_accuracy),
        share(row.execution_accuracy),
        interval,
        grouped(row.confirmed),
        ratio(row.speedup_mean),
        ratio(row.speedup_geomean),
        f"{row.attempts_correct}/{row.attempts}{left_out}",
        grouped(row.input_tokens),
        grouped(row.output_tokens),
        money(row.cost_usd),
    )


def contribution_cells(contribution: ReportContribution) -> tuple[str, ...]:
    """Return the cells of a module, in the order of `CONTRIBUTION_HEADS`."""
    module, added_to = contribution.module, contribution.to
    rows = f"{contribution.row_on} - {contribution.row_off}"
    if contribution.difference is None or contribution.low is None or contribution.high is None:
        return module, added_to, rows, UNKNOWN, UNKNOWN, "not known yet"
    interval = f"{points(contribution.low)} to {points(contribution.high)}"
    remark = "" if contribution.resolved else "not resolved"
    return module, added_to, rows, points(contribution.difference), interval, remark


def points(difference: float) -> str:
    """Return a difference of shares in percentage points, with its sign."""
    return f"{100 * difference:+.0f}"


def session_cells(row: ReportRow) -> tuple[str, ...]:
    """Return the session of a row and its state, in the order of `SESSION_HEADS`."""
    early = ", ".join(f"{number} {reason.replace('_', ' ')}" for reason, number in row.ended_early.items())
    remark = "; ".join(part for part in (row.why, f"ended early: {early}" if early else "") if part)
    return str(row.row), row.session or UNKNOWN, row.state, remark or UNKNOWN


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


def share(value: float | None) -> str:
    """Return a share in percent, without a space: `61%`."""
    return UNKNOWN if value is None else f"{value:.0%}"


def as_table(report: AblationReport) -> str:
    """Return plain tables of rows, modules and sessions, with the legend below."""
    parts = [
        wrapped(heading(report)),
        table(ROW_HEADS, [row_cells(row) for row in report.rows], indent=2),
        table(CONTRIBUTION_HEADS, list(map(contribution_cells, report.contributions)), indent=2),
        table(SESSION_HEADS, [session_cells(row) for row in report.rows], indent=2),
        wrapped("\n".join(legend(report))),
    ]
    return "\n\n".join(parts)


def as_markdown(report: AblationReport) -> str:
    """Return the same tables in GitHub's Markdown."""
    parts = [
        f"### {report.ablation}",
        heading(report),
        markdown_table(ROW_HEADS, [row_cells(row) for row in report.rows]),
        markdown_table(CONTRIBUTION_HEADS, list(map(contribution_cells, report.contributions))),
        markdown_table(SESSION_HEADS, [session_cells(row) for row in report.rows]),
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
