"""A whole report before any format: facts, sections, and the kernels of its winners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions.names import split_series
from tui.facts.vocabulary import counted, grouped, percent

from .kernels import WinnerKernel
from .metrics import TaskMetrics
from .model import SessionReport
from .panes import facts_of, sections_of
from .section import Section
from .tables import RowSet, table_sections, tables_of
from .tables.cost import COST, DEVICE, TOKENS, spent


@dataclass(frozen=True, slots=True)
class Document:
    """A report: what every format shows, in this order."""

    title: str
    facts: dict[str, str]
    """The facts above the sections, by name."""
    sections: tuple[Section, ...]
    metrics: tuple[TaskMetrics, ...] = ()
    """The metrics by task of each session, for data files."""
    kernels: tuple[WinnerKernel, ...] = ()
    """Shown by the HTML page alone."""


def session_document(report: SessionReport, rows: RowSet, kernels: Sequence[WinnerKernel] = ()) -> Document:
    """Return the report of one session: its sections, then the tables over its rows."""
    tables = (section for section in table_sections(rows) if section.rows)
    sections = (*sections_of(report), *tables)
    return Document(report.session, facts_of(report), sections, report.metrics, tuple(kernels))


def rows_document(
    rows: RowSet,
    *,
    metrics: Sequence[TaskMetrics] = (),
    decisions: Section | None = None,
    kernels: Sequence[WinnerKernel] = (),
) -> Document:
    """Return the report of several sessions: the tables over their rows, and what people decided."""
    methods = sorted({row.method for row in rows.rows})
    twice = "a rejudge session has attempts of another session: with both sessions, they count twice"
    unjudged = {"not judged": f"no attempt yet in {', '.join(rows.unjudged)}"} if rows.unjudged else {}
    if not rows.rows:
        return Document("Report", {"attempts": "none was judged yet"} | unjudged, (), tuple(metrics))
    sessions = sorted({row.session for row in rows.rows})
    studies = sorted({split_series(row.series).study for row in rows.rows if row.series})
    tasks = {row.task for row in rows.rows}
    solved = {row.task for row in rows.counted if row.correct}
    correct = sum(row.correct for row in rows.counted)
    share = f", {percent(correct / len(rows.counted))} correct" if rows.counted else ""
    apart = len(rows.rows) - len(rows.counted)
    uncounted = f", {grouped(apart)} not counted" if apart else ""
    recorded = " (as recorded)" if all(row.model.startswith("recorded:") for row in rows.rows) else ""
    hardware = {" ".join(filter(None, row.provenance)) for row in rows.counted if row.headline is not None}
    spendings = [
        f"{budget.words(amount)} {unit}".strip()
        for budget, unit in (
            (TOKENS, f"tokens{recorded}"),
            (COST, ""),
            (DEVICE, "on devices, without baselines"),
        )
        if (amount := spent(rows.rows, budget)) is not None
    ]
    facts = {
        "studies": ", ".join(studies),
        "sessions": f"{grouped(len(sessions))}: {', '.join(sessions)}",
        "methods": ", ".join(methods),
        "caution": twice if "rejudge" in methods and len(methods) > 1 else "",
        "models": ", ".join(sorted({row.model for row in rows.rows})),
        "tasks": f"{grouped(len(solved))} of {grouped(len(tasks))} solved",
        "attempts": f"{grouped(len(rows.counted))} judged{share}{uncounted}",
        "hardware": "; ".join(sorted(hardware)),
        "spent": ", ".join(spendings),
        **unjudged,
    }
    title = studies[0] if len(studies) == 1 else counted(len(sessions), "session")
    sections = [*tables_of(rows), *([decisions] if decisions is not None and decisions.rows else [])]
    return Document(
        f"Report of {title}",
        {name: value for name, value in facts.items() if value},
        tuple(sections),
        tuple(metrics),
        tuple(kernels),
    )
