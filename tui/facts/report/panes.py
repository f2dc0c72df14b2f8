"""The panes of a report and their sections, which the screen and every printed format show alike."""

from __future__ import annotations

from collections.abc import Callable

from sessions.metrics.attempt_row import attempt_rows
from tui.facts.endings import session_ending
from tui.facts.evaluation.provenance import verification_words
from tui.facts.settings_words import REFERENCE_SHOWN, method_words
from tui.facts.spending import session_device_words, session_spent_words
from tui.facts.vocabulary import NO_GPU, counted, duration, grouped, money, percent

from .attempt_sections import attempt_sections, decision_sections
from .case_sections import case_sections
from .count_sections import cost_sections, verdict_sections
from .metric_sections import metric_sections
from .model import SessionReport
from .section import Section
from .winner_sections import winner_sections


def _metrics_and_tables(report: SessionReport) -> tuple[Section, ...]:
    # Imported here: the app starts without the tables.
    from .tables import RowSet, table_sections

    return (*metric_sections(report), *table_sections(RowSet(tuple(attempt_rows(report.state)))))


PRINTED: dict[str, Callable[[SessionReport], tuple[Section, ...]]] = {
    "winners": winner_sections,
    "cases": case_sections,
    "attempts": attempt_sections,
    "verdicts": verdict_sections,
    "decisions": decision_sections,
    "cost": cost_sections,
    "metrics": metric_sections,
}
"""The sections that begin a printed report; then come the tables, with what files say of the tasks."""
PANES = PRINTED | {"metrics": _metrics_and_tables}
"""The panes of the screen in their order. A pane has the same number of sections for each report; some may be empty."""


def sections_of(report: SessionReport) -> list[Section]:
    """Return the sections of a report, winners first; a section without content is left out."""
    return [section for of_pane in PRINTED.values() for section in of_pane(report) if not section.is_empty]


def facts_of(report: SessionReport) -> dict[str, str]:
    """Return the facts above the sections by name; a fact without a value is left out."""
    state, tally = report.state, report.tally
    started = state.started
    total = report.metrics[-1] if report.metrics else None
    solved = total.solved if total else 0
    exams = "" if total is None or total.confirmed is None else f", {total.confirmed} confirmed"
    share = "" if tally.share_correct is None else f", {percent(tally.share_correct)} correct"
    uncounted = f", {grouped(tally.uncounted)} not counted" if tally.uncounted else ""
    decisions = [attempt.decision.accepted for attempt in state.attempts() if attempt.decision is not None]
    waiting = sum(attempt.waiting for attempt in state.attempts())
    people = (
        f"{decisions.count(True)} accepted" if True in decisions else "",
        f"{decisions.count(False)} rejected" if False in decisions else "",
        f"{counted(waiting, 'attempt')} waiting for review" if waiting else "",
    )
    against = (started.against if started else "") or (total.against if total else "")
    timing = f"measured against {against or 'the baseline'}" if report.is_measured else "not measured yet"
    price = state.cost_usd / solved if state.cost_usd is not None and solved else None
    facts = {
        "title": state.title,
        "session": f"{report.session}, {session_ending(state)}",
        "reference": REFERENCE_SHOWN if started and started.options.show_reference else "",
        "method": f"{method_words(started.method, started.options)} with {started.model}" if started else "",
        "tasks": f"{solved} of {len(started.tasks) if started else 0} solved{exams}",
        "speed": timing if report.has_gpu else NO_GPU,
        "hardware": "; ".join(report.hardware),
        "verified": verification_words(state.verification),
        "attempts": f"{grouped(tally.judged)} judged{share}{uncounted}",
        "people": ", ".join(filter(None, people)),
        "spent": session_spent_words(state),
        "price": "" if price is None else f"{money(price)} for each solved task",
        "time": ", ".join(filter(None, (f"{duration(state.worked_s)} of work", session_device_words(state)))),
    }
    return {name: value for name, value in facts.items() if value}
