"""What a session's candidates are timed against, and where, in words."""

from __future__ import annotations

from harness import Evaluation, Verdict
from sessions.events import SessionStarted, WinnerMeasured
from sessions.state import AttemptState

from .certainty import against_words, speedup_words


def timing_words(started: SessionStarted) -> str:
    """`timed against eager; winners on every GPU`; empty where both are as usual."""
    told = (
        f"timed against {started.against}" if started.against else "",
        "winners on every GPU" if started.spread else "",
    )
    return "; ".join(filter(None, told))


def spread_lines(attempt: AttemptState) -> list[str]:
    """The speedup of a winner on each GPU that it was measured on, a line each; none where it was not."""
    return [measured_words(one) for one in sorted(attempt.spread, key=lambda one: one.device)]


def measured_words(one: WinnerMeasured) -> str:
    """`GPU 0: 1.42x against triton`."""
    return f"GPU {one.device}: {_said(one.evaluation)}"


def _said(evaluation: Evaluation) -> str:
    if evaluation.verdict is not Verdict.CORRECT:
        why = f": {evaluation.error.message}" if evaluation.error is not None else ""
        return f"{evaluation.verdict.value.replace('_', ' ')}{why}"
    if not (speed := speedup_words(evaluation)):
        return "correct, no ratio"
    return f"{speed}{against_words(evaluation)}"
