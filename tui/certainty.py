"""How sure a *correct* is, in words: the margin left to each tolerance, and what the exam said."""

from __future__ import annotations

import math
from typing import Protocol

from harness import Basis, Evaluation, Fact, Margin, Verdict
from sessions.metrics import TimedTwice
from sessions.state import AttemptState, Confirmation, InstanceState

BASES = (
    (
        Basis.PROOF,
        "proof (compared by the judge, told by the operating system, or replayed in a clean process)",
    ),
    (Basis.EVIDENCE, "evidence (learned inside the guest, believed less than proof)"),
)
"""In the order in which facts are told, each with its title."""


def left(used: float) -> str:
    """What is left of a tolerance of which this share is used, rounded down: `62 %`, `<1 %`, `none`."""
    share = 1.0 - used
    if share <= 0.0:
        return "none"
    return f"{math.floor(share * 100)} %" if share >= 0.01 else "<1 %"


def worst_first(evaluation: Evaluation) -> list[Margin]:
    """The margins, those with the least left first."""
    return sorted(evaluation.margins, key=lambda margin: margin.used, reverse=True)


def margin_words(evaluation: Evaluation) -> str:
    """`6 cases, worst margin left 62 %`; empty where nothing was compared or no margin is known."""
    if not evaluation.margins:
        return ""
    number = len({margin.case for margin in evaluation.margins})
    cases = counted_cases(number)
    if all(margin.measure == "exact" for margin in evaluation.margins):
        return f"{cases}, all exact"
    return f"{cases}, worst margin left {left(worst_first(evaluation)[0].used)}"


def measured(margin: Margin) -> str:
    """What was compared and where the worst of it is: `elementwise at [3, 517]`, `cosine`."""
    return f"{margin.measure} at {list(margin.index)}" if margin.index else margin.measure


def facts_of(evaluation: Evaluation, basis: Basis) -> list[Fact]:
    """The facts that are believed for this reason."""
    return [fact for fact in evaluation.facts if fact.basis is basis]


def is_winner(attempt: AttemptState, instance: InstanceState | None) -> bool:
    """Whether the attempt is the correct one that its ended instance holds up."""
    ended = instance is not None and instance.finished is not None and instance.best == attempt.attempt
    return ended and attempt.verdict is Verdict.CORRECT


def exam_word(attempt: AttemptState | None, instance: InstanceState | None) -> str:
    """`confirmed`, `not confirmed`, `not examined`; empty for one that nobody has to examine, or not yet."""
    if attempt is None or (attempt.exam is None and not is_winner(attempt, instance)):
        return ""
    return str(attempt.confirmation)


def exam_sentence(attempt: AttemptState, instance: InstanceState | None) -> str:
    """What a person should know of the exam of a correct attempt; empty for one that is not correct."""
    exam = attempt.exam
    if attempt.verdict is not Verdict.CORRECT:
        return ""
    if attempt.examining is not None:
        return f"exam under way: {attempt.examining}"
    if exam is not None and attempt.confirmation is not Confirmation.NOT_EXAMINED:
        if attempt.confirmation is Confirmation.CONFIRMED:
            words = [margin_words(exam)]
            if attempt.evaluation is not None and attempt.speedup_confirmed is not None:
                words.append(speedup_words(attempt.evaluation, attempt.timed_twice))
            elif exam.in_part:
                words.append(f"timed again, {exam.in_part}")
            known = "; ".join(filter(None, words))
            return f"confirmed correct on the exam cases{f': {known}' if known else ''}"
        why = exam.error.message if exam.error is not None else "it failed"
        return f"not confirmed: {exam.verdict.value.replace('_', ' ')} on the exam cases: {why}"
    if attempt.unexamined_because:
        return f"not examined: {attempt.unexamined_because}"
    if instance is not None and instance.finished is None:
        return "not examined: the best attempt is, when the instance ends"
    return "not examined" if is_winner(attempt, instance) else "not examined: only an instance's best is"


def speedup_words(evaluation: Evaluation, twice: TimedTwice | None = None) -> str:
    """`1.42x`, or `found 1.42x, confirmed 1.31x` where it was timed again; `not whole: 5 of 7 cases timed`; empty where nothing was
    timed, or has a ratio.
    """
    if twice is None:
        if evaluation.speedup is not None:
            return f"{evaluation.speedup:.2f}x"
        return f"{evaluation.in_part} timed" if evaluation.in_part else ""
    confirmed = f"confirmed {twice.confirmed:.2f}x"
    if twice.found is None:
        return confirmed
    over = "" if twice.cases is None else f", over the {counted_cases(twice.cases)} with a ratio in both"
    return f"found {twice.found:.2f}x, {confirmed}{over}"


def counted_cases(number: int) -> str:
    """`1 case`, `6 cases`."""
    return "1 case" if number == 1 else f"{number} cases"


def against_words(evaluation: Evaluation, baseline: str = "") -> str:
    """` against triton`: the timing baselines that its ratios were taken against; empty where nobody named one."""
    names = list(dict.fromkeys(each.against for each in evaluation.latency if each.against)) or [baseline]
    return f" against {', '.join(names)}" if any(names) else ""


class Solved(Protocol):
    """What a summary of a session knows of its tasks."""

    @property
    def solved(self) -> tuple[str, ...]:
        """Tasks with a correct attempt."""
        ...

    @property
    def confirmed(self) -> tuple[str, ...] | None:
        """Tasks with a confirmed attempt; `None` where nothing was examined."""
        ...


def told_confirmed(session: Solved) -> str:
    """`1/2`: confirmed tasks of the solved ones; `not examined`; `-` while nothing is solved."""
    if session.confirmed is None:
        return "not examined" if session.solved else "-"
    return f"{len(session.confirmed)}/{len(session.solved)}"
