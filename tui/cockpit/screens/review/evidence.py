"""The evidence for one attempt, one fact a line, for the Review screen. Pure functions of the state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len

from harness import STAGES, Evaluation, Outcome, Verdict
from harness.wire.results.serving_facts import serving_facts
from sessions.names import stage_word
from sessions.state.bests import best_key, measured_attempt, measured_bests, order
from sessions.state.cases import attempt_cases, gain
from sessions.state.findings import findings_of, located
from sessions.state.speed import speed_of
from sessions.state.state import AttemptState, InstanceState, SessionState
from sessions.state.winners import accepted_attempt, bests_by_task
from tui.cockpit.data.archive import Archive
from tui.cockpit.data.attempts import base_of, lineage
from tui.cockpit.draw.grid import table_lines
from tui.cockpit.draw.lines import (
    ELLIPSIS,
    Line,
    Span,
    beginning,
    clean,
    escaped,
    line,
    plain,
    wrap,
    wrap_phrases,
)
from tui.facts import vocabulary
from tui.facts.attempt import dated_decision, strategy_words
from tui.facts.endings import ending_words
from tui.facts.evaluation.certainty import exam_of, tolerance_words
from tui.facts.evaluation.counted import traffic_words
from tui.facts.evaluation.resources import code_changes, is_amd, usage_of
from tui.facts.evaluation.roofs import range_of
from tui.facts.evaluation.spread import comparable_spread
from tui.facts.evaluation.times import missing_cases
from tui.facts.evaluation.verdict import failure_words, speed_facts

NAME_CELLS = 10
GAP = "  "
DATE_CELLS = 8
"""Length of the date at the start of a session's name."""
MOST_CASES = MOST_FINDINGS = 3
"""Cases and findings that are named; more are counted."""
REASON_LINES = 2

Fact = tuple[str, Sequence[Span]]
"""A name and phrases; a phrase is never broken while it fits into a line."""


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
    facts = _facts(state, attempt, instance, wall, archive, width - NAME_CELLS)
    return [row for name, phrases in facts if phrases for row in flow(name, phrases, width)]


def _facts(
    state: SessionState,
    attempt: AttemptState,
    instance: InstanceState,
    wall: float | None,
    archive: Archive | None,
    room: int,
) -> Iterator[Fact]:
    evaluation, decision = attempt.evaluation, attempt.decision
    if decision is not None:
        words = dated_decision(decision, wall)
        yield "decision", [Span(clean(words), "bold" if decision.accepted else "bad bold")]
    if evaluation is not None and evaluation.verdict is Verdict.CORRECT:
        yield from _claim(state, attempt, attempt.timed_evaluation or evaluation)
    elif evaluation is not None:
        yield "verdict", [Span(clean(failure_words(evaluation)), "bad")]
    if findings_of(attempt):
        yield from _findings(attempt)
    yield (
        "before",
        [*_before(state, attempt, instance, archive), *_best_ever(state, attempt, instance, archive)],
    )
    plan = clean(strategy_words(attempt))
    yield "reason", [Span(f'"{_whole_words(plan, room * REASON_LINES - 10)}"')] if plan else []
    if evaluation is not None:
        yield "checks", list(_checks(evaluation))
        tolerance, exam = tolerance_words(evaluation, subject=""), exam_of(attempt, instance)
        yield "tolerance", [Span(clean(tolerance))] if tolerance else []
        yield "exam", [Span(clean(exam.sentence), exam.style)] if exam is not None else []
        yield "findings", [] if findings_of(attempt) else [Span("none")]
        timed = attempt.timed_evaluation or evaluation
        yield "serving", list(_serving(timed, evaluation)) if timed.serving else []
        yield "resources", _resources(state, attempt, instance, evaluation)
        base = base_of(state, attempt)
        if base is not None and base.evaluation is not None:
            for place, row in enumerate(table_lines(code_changes(base.evaluation, evaluation), room)):
                yield "" if place else "code", [Span(plain(row))]


def _whole_words(text: str, width: int) -> str:
    """Return the first words of a text, in at most `width` cells."""
    kept = beginning(text, width)
    return text if kept == text else f"{kept[:-1].rpartition(' ')[0]} {ELLIPSIS}"


def flow(name: str, phrases: Iterable[Span], width: int) -> Iterator[Line]:
    """Yield a fact's lines: its name, then its phrases, broken between phrases and, if need be, at spaces."""
    rows = wrap_phrases(phrases, max(width - NAME_CELLS, 12), Span(GAP))
    for place, row in enumerate(rows):
        yield (Span(f"{'' if place else name:<{NAME_CELLS}}", "dim"), *row)


def _claim(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> Iterator[Fact]:
    """The speedup with the worst case and the bounds; then where it was measured, cases that are no gain, and the roof."""
    rows = [row for row in attempt_cases(attempt) if row.speedup]
    claim = [Span(clean(fact.text), fact.style) for fact in speed_facts(evaluation) if fact.text]
    base = base_of(state, attempt)
    if speed_of(evaluation) is None and base is not None and base.evaluation is not None:
        before = traffic_words(base.evaluation)
        claim[1:1] = [Span(f"base: {before}", "dim")] if before else []
    exact = [row for row in rows if not row.sign]
    if len(exact) > 1:
        worst = min(exact, key=lambda row: row.speedup or 0.0)
        style = "bad" if worst.outcome is Outcome.SLOWER else ""
        claim.append(Span(f"worst case {clean(worst.case)} {worst.figure}", style))
    if bounds := [f"{clean(row.case)} {row.figure}" for row in rows if row.sign]:
        claim.append(Span(_listed(bounds)))
    yield "claim", [*claim, *(Span(clean(cases)) for cases in missing_cases(evaluation) if rows)]
    if not rows:
        return
    slower, open_cases = (
        _listed([clean(row.case) for row in rows if row.outcome is outcome])
        for outcome in (Outcome.SLOWER, Outcome.NOT_RESOLVED)
    )
    measured = [*_devices(state, attempt, evaluation)]
    measured.append(Span(f"slower: {slower}", "bad") if slower else Span("no case slower"))
    if open_cases:
        measured.append(Span(f"interval contains 1: {open_cases}"))
    of_roof, of_peak = range_of(row.roof for row in rows), range_of(row.peak for row in rows)
    if (ends := of_roof or of_peak) is not None:
        shares = dict.fromkeys(vocabulary.percent(end.share) for end in ends)
        words = "the roof" if of_roof is not None else "the vendor's peak"
        peak = " or of the peak of compute" if any(end.is_of_peak for end in ends) else ""
        measured.append(Span(f"{' to '.join(shares)} of {words}{peak}"))
    yield "measured", measured


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_CASES} more" if len(names) > MOST_CASES else ""
    return ", ".join(names[:MOST_CASES]) + more


def _devices(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> Iterator[Span]:
    beside, apart = comparable_spread(attempt)
    speeds = [speed for measured in beside if (speed := speed_of(measured.evaluation)) is not None]
    if speeds:
        in_order = sorted(speeds, key=lambda speed: speed.value)
        count = vocabulary.counted(len(speeds), "GPU")
        yield Span(f"on {count}: {in_order[0].figure} to {in_order[-1].figure}")
    elif not apart and set(state.gpus) - {row.device for row in evaluation.latency}:
        yield Span("one GPU only")
    if apart:
        yield Span(apart)
    if failed := [gpu.device for gpu in attempt.spread if gpu.evaluation.verdict is not Verdict.CORRECT]:
        yield Span(f"not correct on GPU {', '.join(failed)}", "bad")


def about(state: SessionState, attempt: AttemptState, room: int) -> str:
    """Return the attempt with its origin and, in so many cells, its model: `softmax#3/7  optimize of 5  claude-x`."""
    head = f"{attempt.attempt}{GAP}{lineage(state, attempt)}"
    model = clean(attempt.calls[-1].model) if attempt.calls else ""
    whole = f"{head}{GAP}{model}"
    return whole if model and cell_len(whole) <= room else head


def standing_words(state: SessionState, attempt: AttemptState, instance: InstanceState) -> Span:
    """Return whether the instance waits for the decision: `softmax#3 WAITS for your decision`, or its state."""
    if attempt.waiting and state.stopped is not None:
        return Span(
            f"{instance.key} stopped before your decision; it follows it after `wavedeck resume`", "warn"
        )
    if attempt.waiting:
        return Span(f"{instance.key} WAITS for your decision", "warn")
    if instance.finished is not None:
        return Span(f"{instance.key} ended ({ending_words(instance.finished).partition(':')[0]})", "dim")
    if state.stopped is not None:
        return Span(f"{instance.key} goes on after `wavedeck resume`", "dim")
    return Span(f"{instance.key} goes on", "busy")


def _before(
    state: SessionState, attempt: AttemptState, instance: InstanceState, archive: Archive | None
) -> list[Span]:
    """The accepted kernel of the task, and the best attempt of the session."""
    last = accepted_attempt(state, instance.task)
    best = bests_by_task(state).get(instance.task)
    elsewhere = archive.accepted.get(instance.task) if archive is not None else None
    if last is None and elsewhere is not None and elsewhere.session != session_name(state):
        phrases = [Span(f"accepted: {elsewhere.attempt} ({elsewhere.session[:DATE_CELLS]})")]
    else:
        where = " in this session" if last is None and archive is None else ""
        phrases = [Span(f"accepted: {_named(last)}{where}")]
    if best is not None and best.verdict is Verdict.CORRECT:
        phrases.append(Span(f"session's best: {'this' if best is attempt else _compared(attempt, best)}"))
    return phrases


def _best_ever(
    state: SessionState, attempt: AttemptState, instance: InstanceState, archive: Archive | None
) -> list[Span]:
    """The best measured attempt over all sessions, of the same provenance and against the same baseline."""
    measured = measured_attempt(instance.task, attempt)
    if archive is None or measured is None:
        return []
    key, session = best_key(measured), session_name(state)
    bests = [(session, best) for best in measured_bests(state, instance.task) if best_key(best) == key]
    if (stored := archive.best(key)) is not None:
        bests.append((stored.session, stored.measured))
    if not bests:
        return []
    where, best = max(bests, key=lambda pair: order(pair[1]))
    if where != session:
        return [Span(f"best ever: {best.speed.figure} ({where[:DATE_CELLS]})")]
    words = "this" if best.attempt == attempt.attempt else f"{best.attempt} {best.speed.figure}"
    return [Span(f"best ever: {words}")]


def session_name(state: SessionState) -> str:
    """Return the name of the session; empty before its first event."""
    return state.started.session if state.started is not None else ""


def evidence_title(state: SessionState, attempt: AttemptState, instance: InstanceState, room: int) -> str:
    """Return the title of the evidence, as markup: the attempt, and in its colour whether the instance waits."""
    standing = standing_words(state, attempt, instance)
    style = {"warn": "bold $warning", "busy": "$primary"}.get(standing.style, "$wd-dim")
    head = about(state, attempt, room - cell_len(standing.text) - 2 * len(GAP))
    return f"{escaped(head)}{GAP}[{style}]{escaped(standing.text)}[/]"


def _named(attempt: AttemptState | None) -> str:
    if attempt is None:
        return "none"
    speed = attempt.speed
    return f"{attempt.attempt} {speed.figure}" if speed is not None else attempt.attempt


def _compared(attempt: AttemptState, best: AttemptState) -> str:
    """Return `softmax#3/9 1.89x, this -20 %`: the best attempt, and the gain of this attempt on it."""
    change = gain(attempt, best)
    return _named(best) if change is None else f"{_named(best)}, this {vocabulary.percent_change(change)}"


def _checks(evaluation: Evaluation) -> Iterator[Span]:
    """`execution 27/27`, `timing C`; `-` for a stage that was not reached."""
    stages = {stage.name: stage for stage in evaluation.stages}
    for name in STAGES:
        stage, word = stages.get(name), stage_word(name)
        if stage is None or stage.ok is None:
            yield Span(f"{word} {vocabulary.UNKNOWN}", "dim")
        elif not stage.ok:
            yield Span(f"{word} FAILED", "bad")
        else:
            yield Span(f"{word} {stage.cases[0]}/{stage.cases[1]}" if stage.cases else f"{word} C")


def _findings(attempt: AttemptState) -> Iterator[Fact]:
    findings = findings_of(attempt)
    for place, finding in enumerate(findings[:MOST_FINDINGS]):
        yield "" if place else "findings", [Span(f"{place + 1}: {clean(located(finding))}", "warn")]
    if len(findings) > MOST_FINDINGS:
        yield "", [Span(f"{len(findings) - MOST_FINDINGS} more: enter opens the attempt", "dim")]


def _serving(timed: Evaluation, judged: Evaluation) -> Iterator[Span]:
    """The facts of the evaluation with the times that count, then the obstacles that only the verdict met before an exam."""
    if timed is not judged:
        yield Span("measured again in the exam:")
    facts = serving_facts(timed)
    for fact in facts:
        yield Span(clean(f"{fact.name}: {fact.value}"), "warn" if fact.is_obstacle else "")
    obstacles = {fact.name for fact in facts if fact.is_obstacle}
    for fact in serving_facts(judged):
        if fact.is_obstacle and fact.name not in obstacles:
            yield Span(clean(f"before the exam, {fact.name}: {fact.value}"), "warn")


def _resources(
    state: SessionState, attempt: AttemptState, instance: InstanceState, evaluation: Evaluation
) -> list[Span]:
    """The resources on the first target, and their differences to the baseline, else to the base attempt."""
    target = next(iter(evaluation.resources), None)
    if target is None:
        return []
    base = base_of(state, attempt)
    compared = {
        "to the baseline": state.baselines.get(instance.task),
        f"to {base.attempt}" if base is not None else "": base.evaluation if base is not None else None,
    }
    words, before = next(
        (
            (words, usage_of(earlier))
            for words, earlier in compared.items()
            if earlier is not None and next(iter(earlier.resources), None) == target
        ),
        ("", (None,) * 4),
    )
    amd = is_amd(evaluation.resources[target])
    titles = ("vgpr", "spill", "LDS", "waves") if amd else ("regs", "spill", "shared", "warps")
    phrases = []
    for title, value, old in zip(titles, usage_of(evaluation), before, strict=True):
        number = vocabulary.UNKNOWN if value is None else f"{value:g}"
        change = 0 if value is None or old is None else value - old
        changed = f" ({change:+g})" if change else ""
        phrases.append(Span(f"{title} {number}{changed}", "bad" if title == "spill" and value else ""))
    errors = [Span(f"does not compile for {failed}", "bad") for failed in evaluation.compile_errors]
    return [*phrases, Span(f"({', '.join(filter(None, (target, words)))})", "dim"), *errors]


def empty_lines(sentences: Iterable[str], width: int) -> list[Line]:
    """Return sentences for an empty queue, each on lines of its own."""
    return [line(row, "dim") for sentence in sentences for row in wrap(sentence, width)]
