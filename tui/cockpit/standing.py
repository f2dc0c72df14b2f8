"""What an attempt and a session are worth in one styled phrase: verdict, speedup or estimate, state."""

from __future__ import annotations

import math

from harness import Evaluation, Outcome, Verdict
from sessions.metrics import TimedTwice
from sessions.state import Confirmation, SessionState
from tui.certainty import counted_cases
from tui.cockpit.lines import Span
from tui.vocabulary import estimate, letter, times, words


def verdict_style(verdict: Verdict | None) -> str:
    """The style word that goes with a verdict's letter."""
    if verdict is None:
        return "busy"
    if verdict is Verdict.CORRECT:
        return "good"
    return "bad" if verdict.counted else "dim"


def confirmation_style(confirmation: Confirmation) -> str:
    """The style word that goes with what the exam said."""
    styles = {Confirmation.CONFIRMED: "good", Confirmation.NOT_CONFIRMED: "bad"}
    return styles.get(confirmation, "dim")


def interval(evaluation: Evaluation) -> str:
    """The widest of the cases' 95 % intervals of the speedup, or nothing where none was measured."""
    known = [each.ci for each in evaluation.latency if each.ci is not None]
    if not known:
        return ""
    return f"{min(low for low, _ in known):.2f}-{max(high for _, high in known):.2f}"


def roof_factor(evaluation: Evaluation, target: str | None) -> float | None:
    """Upper over lower bound of the roofline estimates, geometric mean over cases: an estimate, never a measurement.

    Only cases of `target` count, or of the first target there is an estimate for when it has none. `None` without estimates.
    """
    known = [each for each in evaluation.estimate if each.low_us > 0 and each.high_us > 0]
    names = [each.target for each in known]
    chosen = target if target in names else names[0] if names else None
    ratios = [each.high_us / each.low_us for each in known if each.target == chosen]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def is_faster(evaluation: Evaluation) -> bool:
    """True if every case with a ratio is faster than the baseline, with an interval above 1."""
    compared = [each for each in evaluation.latency if each.speedup is not None]
    return bool(compared) and all(each.outcome is Outcome.FASTER for each in compared)


def standing(
    evaluation: Evaluation,
    target: str | None,
    twice: TimedTwice | None = None,
    exam: Evaluation | None = None,
) -> Span:
    """A verdict with what is known of speed: a measured speedup, or an estimate that says it is one.

    One that was timed again stands first, with what was found beside it, or over how many cases both can be compared. `exam` is
    the evaluation that timed it again. Only a speedup that is certainly one is green.
    """
    mark = letter(evaluation.verdict)
    if evaluation.verdict is not Verdict.CORRECT:
        return Span(f"{mark} {words(evaluation.verdict)}", verdict_style(evaluation.verdict))
    if twice is not None:
        found = "" if twice.found is None else f" (found {times(twice.found)})"
        beside = found if twice.cases is None else f" on {counted_cases(twice.cases)}"
        style = "good" if is_faster(exam if exam is not None else evaluation) else ""
        return Span(f"{mark} {times(twice.confirmed)}{beside}", style)
    if evaluation.speedup is not None:
        known = interval(evaluation)
        covered = f" over {evaluation.in_part}" if evaluation.in_part else ""
        speedup = f"{evaluation.speedup_bound.sign}{times(evaluation.speedup)}"
        style = "good" if is_faster(evaluation) else ""
        return Span(f"{mark} {speedup}{f' [{known}]' if known else ''}{covered}", style)
    factor = roof_factor(evaluation, target)
    return Span(f"{mark} {estimate(factor)}" if factor is not None else mark)


def session_word(state: SessionState) -> Span:
    """What the session does, as the events tell it."""
    if state.finished:
        return Span("finished", "dim")
    if state.stopped is not None:
        return Span(f"stopped ({state.stopped})", "warn")
    if state.started is None:
        return Span("no events yet", "dim")
    if "" in state.on_hold:
        return Span("paused", "warn")
    waiting = sum(instance.word == "person" for instance in state.instances.values())
    return Span(f"running, {waiting} wait for you", "warn") if waiting else Span("running", "busy")
