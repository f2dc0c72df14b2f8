"""The panes of a report and their sections, which the screen and every printed format show alike."""

from __future__ import annotations

from collections.abc import Callable

from tui.facts.spending import device_words
from tui.facts.vocabulary import NO_GPU, counted, duration, grouped, money, percent

from .attempt_sections import attempt_sections, cost_sections, decision_sections, verdict_sections
from .case_sections import case_sections
from .metric_sections import metric_sections
from .model import SessionReport
from .section import Section
from .winner_sections import winner_sections

PANES: dict[str, Callable[[SessionReport], tuple[Section, ...]]] = {
    "winners": winner_sections,
    "cases": case_sections,
    "attempts": attempt_sections,
    "verdicts": verdict_sections,
    "decisions": decision_sections,
    "cost": cost_sections,
    "metrics": metric_sections,
}
"""The panes of the screen in their order. A pane has the same number of sections for each report; some may be empty."""


def sections_of(report: SessionReport) -> list[Section]:
    """Return the sections of a report, winners first; a section without content is left out."""
    return [section for of_pane in PANES.values() for section in of_pane(report) if not section.is_empty]


def facts_of(report: SessionReport) -> dict[str, str]:
    """Return the facts above the sections by name; a fact without a value is left out."""
    summary = report.summary
    exams = "" if summary.confirmed is None else f", {summary.confirmed} confirmed"
    share = "" if summary.tally.share_correct is None else f", {percent(summary.tally.share_correct)} correct"
    uncounted = f", {grouped(summary.tally.uncounted)} not counted" if summary.tally.uncounted else ""
    decisions = [
        f"{summary.accepted} accepted" if summary.accepted else "",
        f"{summary.rejected} rejected" if summary.rejected else "",
        f"{counted(summary.waiting, 'attempt')} waiting for review" if summary.waiting else "",
    ]
    timing = {"measured": f"measured against {summary.against or 'the baseline'}", "no GPU": NO_GPU}
    price = summary.cost_usd / summary.solved if summary.cost_usd is not None and summary.solved else None
    facts = {
        "title": summary.title,
        "session": f"{summary.session}, {summary.state}",
        "method": f"{summary.method} with {summary.model}",
        "tasks": f"{summary.solved} of {summary.tasks} solved{exams}",
        "speed": timing.get(summary.timing, summary.timing),
        "hardware": "; ".join(summary.provenances),
        "verified": summary.verification,
        "attempts": f"{grouped(summary.tally.judged)} judged{share}{uncounted}",
        "people": ", ".join(filter(None, decisions)),
        "spent": summary.spending,
        "price": "" if price is None else f"{money(price)} for each solved task",
        "time": ", ".join(
            filter(None, (f"{duration(summary.worked_s)} of work", device_words(summary.device_s)))
        ),
    }
    return {name: value for name, value in facts.items() if value}
