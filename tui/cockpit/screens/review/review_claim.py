"""The claim of an attempt: how much faster it is, over which cases, on which GPUs, and how near to the roof."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, Latency, Outcome, Verdict
from harness.wire.latency import Bound
from sessions.state.ranking import estimated_slowdown
from sessions.state.speed import Speed, attempt_speed, speed_of, timed_evaluation
from sessions.state.state import AttemptState, SessionState
from tui.actions.line import gpus_of
from tui.cockpit.draw.lines import Span, clean
from tui.facts import vocabulary
from tui.facts.evaluation.certainty import against_words
from tui.facts.evaluation.roofs import peak_range, roof_range, roof_range_words
from tui.facts.evaluation.times import missing_cases

MOST_CASES = 3
"""Cases that are named; more are counted."""
Fact = tuple[str, Sequence[Span]]
"""A name and phrases; a phrase is never broken while it fits into a line."""


def claim_facts(state: SessionState, attempt: AttemptState) -> list[Fact]:
    """Return the claim of a correct attempt, and where it was measured."""
    evaluation, speed = timed_evaluation(attempt), attempt_speed(attempt)
    if evaluation is None or speed is None:
        return [("claim", _not_measured(state, attempt))]
    return [
        ("claim", _claim(evaluation, speed)),
        ("measured", _circumstances(state, attempt, evaluation)),
    ]


def _claim(evaluation: Evaluation, speed: Speed) -> list[Span]:
    phrases = [Span(str(speed), "good bold" if speed.is_gain else "bold"), Span(speed.exact_words)]
    phrases = [phrase for phrase in phrases if phrase.text]
    if evaluation.exam:
        phrases.append(Span("timed again by the exam"))
    ratios = [row for row in evaluation.latency if row.speedup and row.bound is Bound.NONE]
    if len(ratios) > 1:
        worst = min(ratios, key=lambda row: row.speedup or 0.0)
        phrases.append(Span(f"worst case {_case(worst)}", "bad" if worst.outcome is Outcome.SLOWER else ""))
    bounds = [row for row in evaluation.latency if row.speedup and row.bound is not Bound.NONE]
    phrases += [Span(_case(row)) for row in bounds[:MOST_CASES]]
    if len(bounds) > MOST_CASES:
        phrases.append(Span(f"{len(bounds) - MOST_CASES} more cases with a bound"))
    return [*phrases, *(Span(clean(cases)) for cases in missing_cases(evaluation))]


def _case(row: Latency) -> str:
    ratio = row.speedup or 0.0
    return f"{clean(row.case)} {vocabulary.speedup(ratio, row.bound)}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_CASES} more" if len(names) > MOST_CASES else ""
    return ", ".join(names[:MOST_CASES]) + more


def _circumstances(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> list[Span]:
    """GPUs, baseline, cases that are no gain, and the share of the roof."""
    phrases = [*_where(state, attempt, evaluation)]
    if against := against_words(evaluation):
        phrases.append(Span(clean(against.strip())))
    slower = [clean(row.case) for row in evaluation.latency if row.outcome is Outcome.SLOWER]
    open_cases = [clean(row.case) for row in evaluation.latency if row.outcome is Outcome.NOT_RESOLVED]
    phrases.append(Span(f"slower: {_listed(slower)}", "bad") if slower else Span("no case slower"))
    if open_cases:
        phrases.append(Span(f"interval contains 1: {_listed(open_cases)}"))
    phrases += _roof(evaluation)
    return phrases


def _where(state: SessionState, attempt: AttemptState, evaluation: Evaluation) -> list[Span]:
    spread = {measured.device: measured.evaluation for measured in attempt.spread}
    if not spread:
        devices = list(dict.fromkeys(row.device for row in evaluation.latency))
        only = " only (t: all)" if set(gpus_of(state)) - set(devices) else ""
        return [Span(f"GPU {', '.join(devices)}{only}")]
    speeds = [speed_of(judged) for judged in spread.values()]
    timed = sorted((speed for speed in speeds if speed is not None), key=lambda speed: speed.value)
    failed = [device for device, judged in spread.items() if judged.verdict is not Verdict.CORRECT]
    phrases = []
    if timed:
        count = vocabulary.counted(len(timed), "GPU")
        ends = f"{timed[0].figure} to {timed[-1].figure}"
        phrases.append(Span(f"on {count}: {ends}"))
    if failed:
        phrases.append(Span(f"not correct on GPU {', '.join(failed)}", "bad"))
    return phrases


def _roof(evaluation: Evaluation) -> list[Span]:
    """Return the shares of the practical roof over the cases, else those of the vendor's peak."""
    for ends, words in ((roof_range(evaluation), "the roof"), (peak_range(evaluation), "the vendor's peak")):
        if ends is not None:
            return [Span(f"{roof_range_words(ends)} of {words}")]
    return []


def _not_measured(state: SessionState, attempt: AttemptState) -> list[Span]:
    evaluation = attempt.evaluation
    if evaluation is None:
        return []
    phrases = [
        Span(vocabulary.NOT_MEASURED if gpus_of(state) else f"{vocabulary.NOT_MEASURED}, {vocabulary.NO_GPU}")
    ]
    short_cases = [clean(row.case) for row in evaluation.latency if row.outcome is Outcome.TOO_SHORT]
    if short_cases:
        phrases.append(Span(f"too short for a ratio: {_listed(short_cases)}"))
    factor = estimated_slowdown(evaluation)
    if factor is not None:
        phrases.append(Span(vocabulary.estimate(factor), "dim"))
    return phrases
