"""Facts about the correct kernels of an instance: the best in full, the others as changes to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from engine.prompting.comparison import better_elsewhere, changed_functions
from engine.prompting.comparison import code_difference as source_difference
from engine.prompting.facts import below_words, lost_ground, untimed_beside
from engine.prompting.figures import measurements
from engine.prompting.judged import JudgedCandidate
from sessions.state.code_facts import code_difference
from sessions.state.speed import are_comparable, speed_of

ROUNDS_BEFORE_CHANGE = 2
"""Correct candidates in a row without gain after which the prompt asks for another strategy."""


@dataclass(frozen=True, slots=True)
class OtherKernel:
    """A correct kernel that is not the best one."""

    attempt: str
    why: str
    """Why it ranks below the best one."""
    strategy: str
    difference: str
    """Its code as a diff against the best; empty if the code is too different."""
    functions: str
    """Its functions that differ from the best; empty if the prompt does not need them."""


def other_kernels(
    others: Sequence[JudgedCandidate], best: JudgedCandidate, needed: Collection[str]
) -> list[OtherKernel]:
    """Returns the other kernels of a history: as diffs, or their own functions if they are `needed` and too different."""
    kernels = []
    for other in others:
        difference = source_difference(other.source, best.source)
        kernels.append(
            OtherKernel(
                attempt=other.attempt,
                why=below_words(other, best),
                strategy=other.strategy,
                difference=difference,
                functions=""
                if difference or other.attempt not in needed
                else changed_functions(other.source, best.source),
            )
        )
    return kernels


def code_words(before: JudgedCandidate, after: JudgedCandidate) -> str:
    """Returns how the compiled code of two correct candidates differs; empty if it does not, or not by the same compiler."""
    if not before.passed or not are_comparable(before.evaluation, after.evaluation):
        return ""
    difference = code_difference(before.evaluation, after.evaluation)
    return f"Compiled code, {before.attempt} -> {after.attempt}: {difference}" if difference else ""


def optimizer_facts(
    history: Sequence[JudgedCandidate], last: JudgedCandidate | None, without_gain: int, *, short: bool
) -> dict[str, object]:
    """Returns the facts that the optimizing prompts share; `short` keeps only the best and the latest kernel.

    Raises `ValueError` for an empty history.
    """
    if not history:
        raise ValueError("there is no correct candidate to optimize")
    *others, best = history
    better = better_elsewhere(
        best.evaluation, [(candidate.attempt, candidate.evaluation) for candidate in others]
    )
    latest = last.attempt if last else ""
    shown = [candidate for candidate in others if not short or candidate.attempt == latest]
    needed = {candidate.attempt for candidate in better.values()} | {latest}
    figures = measurements(best.evaluation)
    # Nothing says that a candidate is no gain if it was not timed in a case of the best one.
    is_behind = last is not None and last.attempt != best.attempt and not untimed_beside(last, best)
    ground = lost_ground(best, last) if last is not None and is_behind else ""
    if ground and latest in {candidate.attempt for candidate in shown}:
        ground = f"It is {latest}."
    if not short and best.before is not None and (words := code_words(best.before, best)):
        figures = replace(figures, standouts=[*figures.standouts, words])
    if ground and last is not None and (words := code_words(best, last)):
        ground = f"{ground} {words}"
    return {
        "best": best,
        "known": figures,
        "better": better,
        "others": other_kernels(shown, best, needed),
        "left_out": len(others) - len(shown),
        "timed": speed_of(best.evaluation) is not None or bool(figures.too_short),
        "lost_ground": ground,
        "change_strategy": without_gain >= ROUNDS_BEFORE_CHANGE,
        "without_gain": without_gain,
    }
