"""The evidence for one attempt, one fact a line, for the Review screen. Pure functions of the state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from harness import STAGES, Evaluation, Stage, Verdict
from sessions.state.bests import best_key, measured_attempt, order
from sessions.state.findings import findings_of, located
from sessions.state.speed import attempt_speed
from sessions.state.state import AttemptState, Decision, InstanceState, SessionState
from sessions.state.winners import accepted_attempt, best_of
from tui.cockpit.data.archive import Archive
from tui.cockpit.data.attempts import lineage
from tui.cockpit.draw.lines import Line, Span, cells, clean, line, shorten, wrap
from tui.cockpit.screens.review.review_claim import Fact, claim_facts
from tui.cockpit.screens.review.review_resources import resource_facts
from tui.facts import vocabulary
from tui.facts.evaluation.certainty import exam_of, tolerance_words
from tui.facts.evaluation.verdict import failure_words

NAME_CELLS = 10
GAP = "  "
DATE_CELLS = 8
"""Length of the date at the start of a session's name."""
MOST_FINDINGS = 3
REASON_LINES = 2
COUNTS = re.compile(r"(\d+) of (\d+) cases")


def evidence(
    state: SessionState,
    attempt: AttemptState,
    instance: InstanceState,
    *,
    wall: float | None,
    width: int,
    archive: Archive | None = None,
) -> list[Line]:
    """Return what is known of an attempt, for `width` cells.

    `wall` is the present moment, `None` at rest; `archive` has the other sessions, `None` while it is not read.
    """
    evaluation = attempt.evaluation
    facts: list[Fact] = [("decision", _decision(attempt, wall))]
    if evaluation is not None and evaluation.verdict is Verdict.CORRECT:
        facts += claim_facts(state, attempt)
    elif evaluation is not None:
        facts.append(("verdict", [Span(clean(failure_words(evaluation)), "bad")]))
    facts.append(
        (
            "before",
            [*_before(state, attempt, instance, archive), *_best_ever(state, attempt, instance, archive)],
        )
    )
    if evaluation is not None:
        facts.append(("checks", [_check(stage) for stage in _in_order(evaluation)]))
        tolerance, exam = tolerance_words(evaluation).removeprefix("tolerance "), exam_of(attempt, instance)
        facts.append(("tolerance", [Span(clean(tolerance))] if tolerance else []))
        facts.append(("exam", [Span(clean(exam.sentence), exam.style)] if exam is not None else []))
        facts += _findings(attempt)
        facts += resource_facts(state, attempt, instance)
    facts.append(("reason", _reason(attempt, width - NAME_CELLS)))
    return [row for name, phrases in facts if phrases for row in flow(name, phrases, width)]


def flow(name: str, phrases: Iterable[Span], width: int) -> Iterator[Line]:
    """Yield a fact's lines: its name, then its phrases, broken between phrases and, if need be, at spaces."""
    room = max(width - NAME_CELLS, 12)
    row: list[Span] = []
    head = Span(f"{name:<{NAME_CELLS}}", "dim")
    for phrase in phrases:
        for part in wrap(clean(phrase.text), room) if cells([phrase]) > room else (phrase.text,):
            span = Span(part, phrase.style)
            if row and cells(row) + len(GAP) + cells([span]) > room:
                yield (head, *row)
                head, row = Span(" " * NAME_CELLS), []
            row += [Span(GAP), span] if row else [span]
    if row:
        yield (head, *row)


def about(attempt: AttemptState, room: int) -> str:
    """Return the attempt with its origin and, in so many cells, its model: `softmax#3/7  optimize of 5  claude-x`."""
    head = f"{attempt.attempt}{GAP}{lineage(attempt)}"
    model = clean(attempt.calls[-1].model) if attempt.calls else ""
    whole = f"{head}{GAP}{model}"
    return whole if model and cell_len(whole) <= room else head


def standing_words(attempt: AttemptState, instance: InstanceState) -> Span:
    """Return whether the instance waits for the decision: `softmax#3 WAITS for your decision`, or its state."""
    if attempt.waiting:
        return Span(f"{instance.key} WAITS for your decision", "warn")
    if instance.finished is not None:
        return Span(f"{instance.key} ended ({instance.finished.replace('_', ' ')}), nothing waits", "dim")
    return Span(f"{instance.key} goes on", "busy")


def decision_words(decision: Decision, wall: float | None) -> str:
    """Return `kim accepted 0:05 ago: clean and right`; without a present moment the date of the decision."""
    verb = "accepted" if decision.accepted else "rejected"
    why = f": {' '.join(clean(decision.why).split())}" if decision.why else ""
    when = (
        f"{vocabulary.moment(decision.wall)} UTC"
        if wall is None
        else f"{vocabulary.clock(wall - decision.wall)} ago"
    )
    return f"{clean(decision.by) or 'a person'} {verb} {when}{why}"


def _decision(attempt: AttemptState, wall: float | None) -> list[Span]:
    decision = attempt.decision
    if decision is None:
        return []
    words = f"{vocabulary.decision_mark(attempt)} {decision_words(decision, wall)}"
    return [Span(words, "bold" if decision.accepted else "bad bold")]


def _before(
    state: SessionState, attempt: AttemptState, instance: InstanceState, archive: Archive | None
) -> list[Span]:
    """The accepted kernel of the task, and the best attempt of the session."""
    rivals = [
        rival for chain in state.instances.values() if chain.task == instance.task for rival in chain.attempts
    ]
    last = accepted_attempt(state, instance.task)
    best = best_of(rivals)
    elsewhere = archive.accepted.get(instance.task) if archive is not None else None
    if last is None and elsewhere is not None and elsewhere.session != session_name(state):
        phrases = [Span(f"accepted: {elsewhere.attempt} ({elsewhere.session[:DATE_CELLS]})")]
    else:
        where = " in this session" if last is None and archive is None else ""
        phrases = [Span(f"accepted: {_named(last)}{where}")]
    if best is not None and best.verdict is Verdict.CORRECT:
        phrases.append(Span(f"session's best: {'this' if best is attempt else _named(best)}"))
    return phrases


def _best_ever(
    state: SessionState, attempt: AttemptState, instance: InstanceState, archive: Archive | None
) -> list[Span]:
    """The best measured attempt over all sessions, on the same device product and against the same baseline."""
    measured = measured_attempt(instance.task, attempt)
    if archive is None or measured is None:
        return []
    best = archive.best(best_key(measured))
    if best is None or order(measured) >= order(best.measured):
        return [Span("best ever: this")]
    where = best.measured.attempt if best.session == session_name(state) else best.session[:DATE_CELLS]
    return [Span(f"best ever: {best.measured.speed.figure} ({where})")]


def session_name(state: SessionState) -> str:
    """Return the name of the session; empty before its first event."""
    return state.started.session if state.started is not None else ""


def evidence_title(attempt: AttemptState, instance: InstanceState, room: int) -> str:
    """Return the title of the evidence, as markup: the attempt, and in its colour whether the instance waits."""
    standing = standing_words(attempt, instance)
    style = {"warn": "bold $warning", "busy": "$primary"}.get(standing.style, "$wd-dim")
    head = about(attempt, room - cell_len(standing.text) - 2 * len(GAP))
    return f"{escaped(head)}{GAP}[{style}]{escaped(standing.text)}[/]"


def escaped(text: str) -> str:
    """Return text that means itself in markup."""
    return text.replace("[", "\\[")


def _named(attempt: AttemptState | None) -> str:
    if attempt is None:
        return "none"
    speed = attempt_speed(attempt)
    return f"{attempt.attempt} {speed.figure}" if speed is not None else attempt.attempt


def _in_order(evaluation: Evaluation) -> Iterator[tuple[str, Stage | None]]:
    stages = {stage.name: stage for stage in evaluation.stages}
    return ((name, stages.get(name)) for name in STAGES)


def _check(named: tuple[str, Stage | None]) -> Span:
    """`execution 27/27`, `timing C`; `-` for a stage that was not reached."""
    name, stage = named
    word = "timing" if name == "performance" else name
    if stage is None or stage.ok is None:
        return Span(f"{word} {vocabulary.UNKNOWN}", "dim")
    if not stage.ok:
        return Span(f"{word} FAILED", "bad")
    counts = COUNTS.search(stage.detail)
    return Span(f"{word} {counts[1]}/{counts[2]}" if counts else f"{word} C")


def _findings(attempt: AttemptState) -> Iterator[Fact]:
    findings = findings_of(attempt)
    if not findings:
        yield "findings", [Span("none")]
    for place, finding in enumerate(findings[:MOST_FINDINGS]):
        yield "" if place else "findings", [Span(f"{place + 1}: {clean(located(finding))}", "warn")]
    if len(findings) > MOST_FINDINGS:
        yield "", [Span(f"{len(findings) - MOST_FINDINGS} more: enter opens the attempt", "dim")]


def _reason(attempt: AttemptState, room: int) -> list[Span]:
    """The plan of the model, in at most `REASON_LINES` lines."""
    text = " ".join(clean(attempt.strategy).split())
    return [Span(shorten(f'"{text}"', room * REASON_LINES - 8))] if text else []


def empty_lines(sentences: Iterable[str], width: int) -> list[Line]:
    """Return sentences for an empty queue, each on lines of its own."""
    return [line(row, "dim") for sentence in sentences for row in wrap(sentence, width)]
