"""A whole report before any format: facts, sections, and the kernels of its winners."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from sessions.names import split_series
from tui.facts.settings_words import REFERENCE_SHOWN
from tui.facts.vocabulary import counted, duration, grouped, money, percent

from .kernels import WinnerKernel
from .model import SessionReport
from .panes import facts_of, sections_of
from .section import Section
from .tables import IN_SESSION, RowSet, tables_of


@dataclass(frozen=True, slots=True)
class Document:
    """A report: what every format shows, in this order."""

    title: str
    facts: dict[str, str]
    """The facts above the sections, by name."""
    sections: tuple[Section, ...]
    kernels: tuple[WinnerKernel, ...] = ()
    """Shown by the HTML page alone."""


def session_document(
    report: SessionReport, rows: RowSet | None, kernels: Sequence[WinnerKernel] = ()
) -> Document:
    """Return the report of one session: its sections, then the tables over its rows unless they are `None`."""
    facts, tables = facts_of(report), list[Section]()
    if rows is not None:
        tables = tables_of(rows, but=IN_SESSION)
        facts |= {"metrics": rows.left_out()} if rows.rows and not rows.selection.rows else {}
    return Document(report.session, facts, (*sections_of(report), *tables), tuple(kernels))


def rows_document(rows: RowSet, kernels: Sequence[WinnerKernel] = ()) -> Document:
    """Return the report of several sessions: facts about their rows, and the tables over them."""
    if not rows.rows:
        return Document("Report", {"attempts": "none was judged yet"} | _unjudged(rows), ())
    studies = _names(split_series(row.series).study for row in rows.rows if row.series)
    sessions = _names(row.session for row in rows.rows)
    title = studies[0] if len(studies) == 1 else counted(len(sessions), "session")
    return Document(f"Report of {title}", _facts(rows), tuple(tables_of(rows)), tuple(kernels))


def _facts(rows: RowSet) -> dict[str, str]:
    judged = rows.selection.rows
    sessions, methods = (_names(getattr(row, name) for row in rows.rows) for name in ("session", "method"))
    shown = _names(row.session for row in rows.rows if row.reference_shown)
    tasks = {row.task for row in rows.rows}
    solved = {row.task for row in judged if row.correct}
    correct = sum(row.correct for row in judged)
    share = f", {percent(correct / len(judged))} correct" if judged else ""
    apart = len(rows.rows) - len(judged)
    twice = "a rejudge session has attempts of another session: with both sessions, they count twice"
    hardware = (" ".join(filter(None, row.provenance)) for row in judged if row.headline is not None)
    facts = {
        "studies": ", ".join(_names(split_series(row.series).study for row in rows.rows if row.series)),
        "sessions": f"{grouped(len(sessions))}: {', '.join(sessions)}",
        "methods": ", ".join(methods),
        "caution": twice if "rejudge" in methods and len(methods) > 1 else "",
        "reference": f"{REFERENCE_SHOWN}: {', '.join(shown)}" if shown else "",
        "models": ", ".join(_names(row.model for row in rows.rows)),
        "tasks": f"{grouped(len(solved))} of {grouped(len(tasks))} solved",
        "attempts": f"{grouped(len(judged))} judged{share}{f', {grouped(apart)} not counted' if apart else ''}",
        "hardware": "; ".join(_names(hardware)),
        "spent": _spent(rows),
        **_unjudged(rows),
    }
    return {name: value for name, value in facts.items() if value}


def _names(values: Iterable[str]) -> list[str]:
    return sorted(set(values))


def _unjudged(rows: RowSet) -> dict[str, str]:
    return {"not judged": f"no attempt yet in {', '.join(rows.unjudged)}"} if rows.unjudged else {}


def _spent(rows: RowSet) -> str:
    recorded = " (as recorded)" if all(row.model.startswith("recorded:") for row in rows.rows) else ""
    tokens = [count for row in rows.rows for count in (row.input_tokens, row.output_tokens)]
    spendings: tuple[tuple[Sequence[float | None], Callable[[float], str]], ...] = (
        (tokens, lambda amount: f"{grouped(round(amount))} tokens{recorded}"),
        ([row.cost_usd for row in rows.rows], money),
        (
            [row.device_s or None for row in rows.rows],
            lambda s: f"{duration(s)} on devices, without baselines",
        ),
    )
    sums = (([number for number in amounts if number is not None], words) for amounts, words in spendings)
    return ", ".join(words(math.fsum(amounts)) for amounts, words in sums if amounts)
