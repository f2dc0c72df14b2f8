"""The reason why an attempt has no times, and its estimates."""

from __future__ import annotations

from harness import Evaluation, Verdict
from sessions.state.speed import missing_speed
from sessions.state.state import AttemptState
from tui.cockpit.draw.lines import EMPTY, Line, clean, line, wrap
from tui.cockpit.screens.agent.page import table_lines
from tui.facts.evaluation.counted import estimates_table
from tui.facts.evaluation.verdict import failure_words


def absence_lines(attempt: AttemptState | None, name: str, width: int) -> list[Line]:
    """
    Return why there are no times, then the table of estimates if there are estimates.

    `name` is that of the attempt that a person asked for, or of the instance.
    """
    if attempt is None:
        begun = "has not begun" if "/" in name else "has no attempt yet"
        text = f"{name} {begun}: times come here after the verdict."
        return [line(row, "dim") for row in wrap(text, width)]
    evaluation = attempt.evaluation
    if evaluation is None:
        text = f"{attempt.attempt} has no verdict yet. {_progress(attempt)}"
        return [line(row, "busy") for row in wrap(text, width)]
    if evaluation.verdict is not Verdict.CORRECT:
        text = f"Only correct attempts are timed. The verdict is {clean(failure_words(evaluation))}"
        return [line(row) for row in wrap(text, width)]
    text = f"Not timed: {clean(missing_speed(evaluation))}."
    return [*(line(row) for row in wrap(text, width)), EMPTY, *estimate_lines(evaluation, width)]


def _progress(attempt: AttemptState) -> str:
    return f"Now: judge: {attempt.stage}." if attempt.stage else f"Now: {attempt.word}."


def estimate_lines(evaluation: Evaluation, width: int) -> list[Line]:
    """Return the roofline estimates by target and case, with their sources; words if there are none."""
    if not evaluation.estimate:
        return [line("No estimate either: nothing was compiled or counted at GPU sizes.", "dim")]
    return table_lines(estimates_table(evaluation), width)
