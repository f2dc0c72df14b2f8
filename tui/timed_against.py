"""Words for the timing baseline of a session, and for the speedups of a winner on several GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, Verdict
from sessions.events import WinnerMeasured
from sessions.settings import RunSettings
from sessions.state.speed import speed_of
from sessions.state.state import AttemptState

from .certainty import against_words


def timing_words(started: RunSettings) -> str:
    """Return `timed against eager; winners on every GPU`; empty with the default timing."""
    words = (
        f"timed against {started.against}" if started.against else "",
        "winners on every GPU" if started.spread else "",
    )
    return "; ".join(filter(None, words))


def spread_lines(attempt: AttemptState) -> list[str]:
    """Return the speedup of a winner on each GPU, one line per GPU; empty if it was not measured there."""
    return list(map(measured_words, sorted_by_device(attempt.spread)))


def sorted_by_device(spread: Sequence[WinnerMeasured]) -> list[WinnerMeasured]:
    """Return the measurements of a winner in the order of their devices."""
    return sorted(spread, key=lambda measurement: measurement.device)


def measured_words(measurement: WinnerMeasured) -> str:
    """Return `GPU 0: 1.42x against triton`."""
    return f"GPU {measurement.device}: {_result(measurement.evaluation)}"


def _result(evaluation: Evaluation) -> str:
    if evaluation.verdict is not Verdict.CORRECT:
        why = f": {evaluation.error.first_line}" if evaluation.error is not None else ""
        return f"{evaluation.verdict.value.replace('_', ' ')}{why}"
    if (speed := speed_of(evaluation)) is None:
        return "correct, no ratio"
    return f"{speed.words}{against_words(evaluation)}"
