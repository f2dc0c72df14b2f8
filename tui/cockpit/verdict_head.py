"""The first lines of a verdict: what is wrong and where, or how fast and how sure."""

from __future__ import annotations

import math

from harness import ErrorReport, Evaluation, Mismatch, Verdict
from sessions.state.findings import finding_words, findings_of, located
from sessions.state.ranking import estimated_slowdown
from sessions.state.speed import missing_speed, speed_of, timed_evaluation
from sessions.state.state import AttemptState, Confirmation, InstanceState
from tui import vocabulary
from tui.certainty import against_words, used_share, worst_first
from tui.cockpit import standing
from tui.cockpit.error_lines import error_lines
from tui.cockpit.lines import EMPTY, Line, Span, cells, clean, fit, line
from tui.measured import missing_words

DOT = Span(" · ", "dim")
LEAST_CELLS = 16
"""A fact that gets less room than this is left out."""


def head_lines(attempt: AttemptState, instance: InstanceState | None) -> list[Line]:
    """Return the verdict in two lines, of any length: first what to do about an error, else speed and certainty."""
    evaluation = attempt.evaluation
    if evaluation is None:
        return [_before_verdict(attempt), EMPTY]
    if evaluation.verdict is Verdict.CORRECT:
        return _correct(attempt, evaluation, instance)
    return _failed(attempt, evaluation)


def pinned_lines(attempt: AttemptState, instance: InstanceState | None, width: int) -> list[Line]:
    """Return `head_lines` in at most `width` cells each; facts that do not fit go, a single fact is shortened."""
    return [_fitted(head, width) for head in head_lines(attempt, instance)]


def _fitted(head: Line, width: int) -> Line:
    """Cut the last fact that fits in part; facts after it go."""
    while cells(head) > width:
        *first, last = head
        room = width - cells(first)
        if room >= LEAST_CELLS or not first:
            return (*first, Span(fit(last.text, max(room, 1)), last.style))
        head = tuple(first)
    return head


def certainty_words(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Return findings, tolerance and exam of a correct attempt, a line each; empty for any other."""
    if attempt.evaluation is None or attempt.verdict is not Verdict.CORRECT:
        return ""
    finding = clean(finding_words(findings_of(attempt)))
    words = (finding, tolerance_words(attempt.evaluation), exam_words(attempt, instance).text)
    return "\n".join(filter(None, words))


def tolerance_words(evaluation: Evaluation) -> str:
    """Return `tolerance used 80 % (case fp32-outlier)`, of the worst element; empty if no margin is known."""
    margins = worst_first(evaluation)
    if not margins:
        return ""
    if all(margin.measure == "exact" for margin in margins):
        return "all outputs exact"
    return f"tolerance used {used_share(margins[0].used)} (case {clean(margins[0].case)})"


def exam_words(attempt: AttemptState, instance: InstanceState | None) -> Span:
    """Return `confirmed by exam`, `failed exam: ...`, or that the attempt is not examined, and why."""
    if attempt.examining is not None:
        return Span(f"exam runs: {attempt.examining}", "busy")
    if attempt.confirmation is Confirmation.CONFIRMED:
        return Span("confirmed by exam")
    if attempt.confirmation is Confirmation.NOT_CONFIRMED and attempt.exam is not None:
        error = attempt.exam.error
        why = clean(error.first_line) if error is not None else vocabulary.words(attempt.exam.verdict)
        return Span(f"failed exam: {why}", "bad")
    if attempt.unexamined_because:
        return Span(f"not examined: {clean(attempt.unexamined_because)}", "dim")
    goes_on = instance is not None and instance.finished is None
    return Span("not examined yet" if goes_on else "not examined", "dim")


def speed_facts(attempt: AttemptState) -> list[Span]:
    """Return the speedup with interval, baseline and GPU; without one the reason, and the estimate, which says so."""
    evaluation = timed_evaluation(attempt)
    if evaluation is None:
        return []
    speed = speed_of(evaluation)
    if speed is None:
        factor = estimated_slowdown(evaluation)
        reason = Span(f"no speedup: {clean(missing_speed(evaluation))}")
        return [reason, Span("" if factor is None else vocabulary.estimate(factor), "dim")]
    devices = list(dict.fromkeys(clean(latency.device) for latency in evaluation.latency))
    gpus = f" on GPU {', '.join(devices)}"
    words = f"{speed.words}{clean(against_words(evaluation))}{gpus}"
    return [Span(words, standing.speed_style(speed))]


def _before_verdict(attempt: AttemptState) -> Line:
    if attempt.stage:
        passed = ", ".join(stage.name for stage in attempt.stages if stage.ok)
        return (
            Span(f"judge: {attempt.stage}", "busy"),
            *((DOT, Span(f"passed: {passed}", "dim")) if passed else ()),
        )
    call = attempt.calls[-1] if attempt.calls else None
    if call is not None and call.failed:
        return (Span("no reply", "bad"), DOT, *line(call.failed, "bad"))
    return line("no verdict yet", "dim")


def _correct(attempt: AttemptState, evaluation: Evaluation, instance: InstanceState | None) -> list[Line]:
    timed = timed_evaluation(attempt) or evaluation
    partly = clean(missing_words(timed)) if timed.in_part and speed_of(timed) is not None else ""
    findings = findings_of(attempt)
    verdict = Span("correct", "bold")
    if findings:
        verdict = Span(f"correct, {vocabulary.counted(len(findings), 'finding')}", "warn bold")
    first_finding = Span(clean(located(findings[0])) if findings else "", "warn")
    return [
        _dotted([verdict, *speed_facts(attempt), first_finding]),
        _dotted([Span(tolerance_words(evaluation)), exam_words(attempt, instance), Span(partly, "dim")]),
    ]


def _dotted(facts: list[Span]) -> Line:
    spans: list[Span] = []
    for fact in facts:
        if fact.text:
            spans += [DOT, fact] if spans else [fact]
    return tuple(spans)


def _failed(attempt: AttemptState, evaluation: Evaluation) -> list[Line]:
    style = standing.verdict_style(evaluation.verdict)
    name = Span(vocabulary.words(evaluation.verdict).upper(), f"{style} bold")
    error = evaluation.error
    if error is None:
        return [(name,), EMPTY]
    numbers = error_lines(attempt)
    place = [Span(f" line {numbers[0]}", "key")] if numbers else []
    if error.mismatch is None:
        rest = " ".join(clean(error.message.partition("\n")[2]).split())
        return [
            (name, *place, DOT, *line(error.first_line)),
            _dotted([Span(clean(error.cases)), Span(rest, "dim")]),
        ]
    return [
        (name, *place, DOT, Span(f"case {clean(error.mismatch.case)}"), DOT, *_element(error.mismatch)),
        _extent(error, error.mismatch),
    ]


def _element(mismatch: Mismatch) -> Line:
    index = ", ".join(map(str, mismatch.index))
    return (
        Span(f"{clean(mismatch.output)}[{index}]: expected {clean(mismatch.expected)}, got "),
        Span(clean(mismatch.got), "bad"),
    )


def _extent(error: ErrorReport, mismatch: Mismatch) -> Line:
    elements = math.prod(mismatch.expected_shape)
    wrong = round(mismatch.wrong_share * elements)
    extent = f"{wrong:,} of {vocabulary.count(elements)} elements wrong"
    where = clean(mismatch.pattern[0]) if mismatch.pattern else ""
    return _dotted([Span(extent), Span(clean(error.cases)), Span(where, "dim")])
