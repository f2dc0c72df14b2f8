"""The panes of a report and their sections, which the screen and every printed format show alike."""

from __future__ import annotations

from collections.abc import Callable

from engine.tuning.best_by_case import best_by_case
from sessions.state.winners import confirmed_tasks
from tui.facts.endings import session_ending
from tui.facts.evaluation.best_by_case import FIELDS, MEASURED, TITLE
from tui.facts.evaluation.counted import TRAFFIC
from tui.facts.evaluation.provenance import verification_words
from tui.facts.evaluation.times import time_fields
from tui.facts.settings_words import REFERENCE_SHOWN, method_words
from tui.facts.spending import session_device_words, session_spent_words
from tui.facts.tables import Cell, Column, Row, columns_of, rows_of
from tui.facts.vocabulary import NO_GPU, counted, duration, grouped, money, percent

from .attempt_sections import attempt_sections, decision_sections
from .count_sections import cost_sections, verdict_sections
from .model import SessionReport
from .section import Section, section_of
from .winner_sections import winner_sections

ATTEMPT = Column("attempt", most=26, keep=True)


def case_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the cases of the winners, and what `tune` found for each case."""
    bests = [best for winner in report.winners for best in best_by_case(report.state, winner.task)]
    fields = time_fields([row for winner in report.winners for row in winner.cases])
    suspects = [
        f"{winner.attempt}, case {row.case}: suspect: {row.suspect}"
        for winner in report.winners
        for row in winner.cases
        if row.suspect
    ]
    rows = tuple(
        Row(f"{winner.attempt}|{row.key}", (Cell(winner.attempt), *row.cells))
        for winner in report.winners
        for row in rows_of(fields, winner.cases, lambda case: case.key)
    )
    medians = "Medians in microseconds; `<` says that a time is too short to be timed exactly."
    counted_bytes = [
        (winner.attempt, traffic)
        for winner in report.winners
        if winner.speed is None and winner.evaluation is not None
        for traffic in winner.evaluation.traffic
    ]
    return (
        Section(
            "Cases of the winners", (medians, *suspects) if rows else (), (ATTEMPT, *columns_of(fields)), rows
        ),
        section_of(
            TITLE,
            FIELDS,
            bests,
            lambda best: f"{best.attempt}|{best.row.case}",
            *([MEASURED] if bests else []),
        ),
        Section(
            "Bytes of the cases of winners without times",
            ("Counted by the interpreter at CPU sizes.",) if counted_bytes else (),
            (ATTEMPT, *columns_of(TRAFFIC)),
            tuple(
                Row(f"{name}|{traffic.case}", (Cell(name), *(field.cell(traffic) for field in TRAFFIC)))
                for name, traffic in counted_bytes
            ),
        ),
    )


PANES: dict[str, Callable[[SessionReport], tuple[Section, ...]]] = {
    "winners": winner_sections,
    "cases": case_sections,
    "attempts": attempt_sections,
    "verdicts": verdict_sections,
    "decisions": decision_sections,
    "cost": cost_sections,
}
"""
The panes of the screen in their order; a printed report begins with their sections, before the tables over attempts. A pane
has the same number of sections for each report; some may be empty.
"""


def sections_of(report: SessionReport) -> list[Section]:
    """Return the sections of a report, winners first; a section without content is left out."""
    return [section for of_pane in PANES.values() for section in of_pane(report) if not section.is_empty]


def facts_of(report: SessionReport) -> dict[str, str]:
    """Return the facts above the sections by name; a fact without a value is left out."""
    state, tally = report.state, report.tally
    started = state.started
    tasks = started.tasks if started else ()
    solved, confirmed = len(report.solved), confirmed_tasks(state, tasks)
    exams = "" if confirmed is None else f", {len(confirmed)} confirmed"
    share = "" if tally.share_correct is None else f", {percent(tally.share_correct)} correct"
    uncounted = f", {grouped(tally.uncounted)} not counted" if tally.uncounted else ""
    decisions = [attempt.decision.accepted for attempt in state.attempts() if attempt.decision is not None]
    waiting = sum(attempt.waiting for attempt in state.attempts())
    people = (
        f"{decisions.count(True)} accepted" if True in decisions else "",
        f"{decisions.count(False)} rejected" if False in decisions else "",
        f"{counted(waiting, 'attempt')} waiting for review" if waiting else "",
    )
    against = (started.against if started else "") or report.against
    timing = f"measured against {against or 'the baseline'}" if report.is_measured else "not measured yet"
    price = state.cost_usd / solved if state.cost_usd is not None and solved else None
    facts = {
        "title": state.title,
        "session": f"{report.session}, {session_ending(state)}",
        "reference": REFERENCE_SHOWN if started and any(map(started.shows_reference, tasks)) else "",
        "method": f"{method_words(started.method, started.options)} with {started.model}" if started else "",
        "tasks": f"{solved} of {len(tasks)} solved{exams}",
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
