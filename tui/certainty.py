"""Words for how safe a *correct* verdict is: the margin left to each tolerance, and the result of the exam."""

from __future__ import annotations

import math
from typing import Protocol

from harness import Basis, Evaluation, Fact, Margin, Verdict
from sessions.state.speed import attempt_speed, found_speed, is_timed_again
from sessions.state.state import AttemptState, Confirmation, InstanceState

BASES = (
    (
        Basis.PROOF,
        "proof (from the judge, the operating system, or a replay in a clean process)",
    ),
    (Basis.EVIDENCE, "evidence (observed inside the guest, so weaker than proof)"),
)
"""Kinds of facts in the order in which pages list them, each with its title."""


def used_share(used: float) -> str:
    """Return the share of a tolerance that is used, rounded up: `38 %`."""
    return f"{math.ceil(used * 100)} %"


def worst_first(evaluation: Evaluation) -> list[Margin]:
    """Return the margins, closest to its tolerance first."""
    return sorted(evaluation.margins, key=lambda margin: margin.used, reverse=True)


def margin_words(evaluation: Evaluation) -> str:
    """Return `6 cases pass; closest to its tolerance: 38 % used`, for a correct verdict; empty if no margin is known."""
    if not evaluation.margins:
        return ""
    number = len({margin.case for margin in evaluation.margins})
    passed = f"{counted_cases(number)} pass{'es' if number == 1 else ''}"
    if all(margin.measure == "exact" for margin in evaluation.margins):
        return f"{passed}; all exact"
    return f"{passed}; closest to its tolerance: {math.ceil(worst_first(evaluation)[0].used * 100)} % used"


def measured(margin: Margin) -> str:
    """Return the measure of a margin and the index of its worst element: `elementwise at [3, 517]`, `cosine`."""
    return f"{margin.measure} at {list(margin.index)}" if margin.index else margin.measure


def facts_of(evaluation: Evaluation, basis: Basis) -> list[Fact]:
    """Return the facts with this basis."""
    return [fact for fact in evaluation.facts if fact.basis is basis]


def is_winner(attempt: AttemptState, instance: InstanceState | None) -> bool:
    """True if the attempt is correct and the best of its finished instance."""
    ended = instance is not None and instance.finished is not None and instance.best == attempt.attempt
    return ended and attempt.verdict is Verdict.CORRECT


def exam_word(attempt: AttemptState | None, instance: InstanceState | None) -> str:
    """Return `confirmed`, `failed exam` or `not examined`; empty if the attempt needs no exam, or none yet."""
    if attempt is None or (attempt.exam is None and not is_winner(attempt, instance)):
        return ""
    return str(attempt.confirmation)


def exam_sentence(attempt: AttemptState, instance: InstanceState | None) -> str:
    """Return the result or the state of an attempt's exam; empty if the attempt is not correct."""
    exam = attempt.exam
    if attempt.verdict is not Verdict.CORRECT:
        return ""
    if attempt.examining is not None:
        return f"exam under way: {attempt.examining}"
    if exam is not None and attempt.confirmation is not Confirmation.NOT_EXAMINED:
        if attempt.confirmation is Confirmation.CONFIRMED:
            figures = [margin_words(exam)]
            if is_timed_again(attempt):
                figures.append(speed_words(attempt))
            words = "; ".join(filter(None, figures))
            return f"confirmed by exam{f': {words}' if words else ''}"
        why = exam.error.first_line if exam.error is not None else "it failed"
        return f"failed exam: {exam.verdict.value.replace('_', ' ')} on the exam cases: {why}"
    if attempt.unexamined_because:
        return f"not examined: {attempt.unexamined_because}"
    if instance is not None and instance.finished is None:
        return "exam: the best attempt is examined when the instance ends"
    return (
        "not examined"
        if is_winner(attempt, instance)
        else "exam: only the best attempt of an instance is examined"
    )


def speed_words(attempt: AttemptState) -> str:
    """Return `1.42x [1.38, 1.45]`, or `found 1.42x, confirmed 1.31x` if the exam timed it again; empty if not timed."""
    speed, found = attempt_speed(attempt), found_speed(attempt)
    if speed is None:
        return ""
    if not is_timed_again(attempt):
        return speed.words
    return f"found {found.figure}, confirmed {speed}" if found is not None else f"confirmed {speed}"


def counted_cases(number: int) -> str:
    """Return `1 case`, `6 cases`."""
    return "1 case" if number == 1 else f"{number} cases"


def against_words(evaluation: Evaluation, baseline: str = "") -> str:
    """Return ` against triton`: the timing baselines of the ratios. `baseline` is the name if the latencies have none."""
    names = list(dict.fromkeys(row.against for row in evaluation.latency if row.against)) or [baseline]
    return f" against {', '.join(names)}" if any(names) else ""


class Solved(Protocol):
    """Summary of a session with its solved and confirmed tasks."""

    @property
    def solved(self) -> tuple[str, ...]:
        """Tasks with a correct attempt."""
        ...

    @property
    def confirmed(self) -> tuple[str, ...] | None:
        """Tasks with a confirmed attempt; `None` if no exam ran."""
        ...


def told_confirmed(session: Solved) -> str:
    """Return `1/2` (confirmed of solved tasks), `not examined`, or `-` if no task is solved."""
    if session.confirmed is None:
        return "not examined" if session.solved else "-"
    return f"{len(session.confirmed)}/{len(session.solved)}"
