"""The times of a winner on several GPUs."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation, Verdict
from sessions.events import WinnerMeasured
from sessions.state.cases import case_rows
from sessions.state.speed import are_comparable, speed_of
from sessions.state.state import AttemptState
from tui.facts.tables import Table
from tui.facts.vocabulary import UNKNOWN

from .certainty import against_words
from .times import device_table, times_table
from .verdict import failure_words


def spread_tables(attempt: AttemptState) -> list[Table]:
    """Return the times of a winner on each GPU, and the GPUs during timing; empty if it was not measured there."""
    measured = [measurement.evaluation for measurement in sorted_by_device(attempt.spread)]
    rows = [row for evaluation in measured for row in case_rows(evaluation, judged=attempt.evaluation)]
    times = times_table(rows, "timed again on these GPUs, in new processes").with_sentences(
        *spread_lines(attempt)
    )
    return [times, device_table([row.latency for row in rows if row.latency is not None])]


def spread_lines(attempt: AttemptState) -> list[str]:
    """Return the speedup of a winner on each GPU, one line per GPU; empty if it was not measured there."""
    return list(map(measured_words, sorted_by_device(attempt.spread)))


def sorted_by_device(spread: Sequence[WinnerMeasured]) -> list[WinnerMeasured]:
    """Return the measurements of a winner in the order of their devices."""
    return sorted(spread, key=lambda measurement: measurement.device)


def comparable_spread(attempt: AttemptState) -> tuple[list[WinnerMeasured], str]:
    """Return the measurements that are compared with the attempt's own times, and a clause about the others."""
    own = attempt.timed_evaluation
    spread = sorted_by_device(attempt.spread)
    beside = [measured for measured in spread if are_comparable(measured.evaluation, own)]
    apart = ", ".join(measured.device for measured in spread if measured not in beside)
    return beside, f"not compared: GPU {apart}, other hardware or software" if apart else ""


def by_gpu_words(attempt: AttemptState) -> str:
    """Return the speedup of a winner on each GPU, `0 1.42x, 1 1.40x`; empty if it was not measured there."""
    beside, apart = comparable_spread(attempt)
    figures = [
        f"{measured.device} {speed.figure if (speed := speed_of(measured.evaluation)) else UNKNOWN}"
        for measured in beside
    ]
    return ", ".join(filter(None, (*figures, apart)))


def measured_words(measurement: WinnerMeasured) -> str:
    """Return `GPU 0: 1.42x against triton`."""
    return f"GPU {measurement.device}: {_result(measurement.evaluation)}"


def _result(evaluation: Evaluation) -> str:
    if evaluation.verdict is not Verdict.CORRECT:
        return failure_words(evaluation)
    if (speed := speed_of(evaluation)) is None:
        return "correct, no ratio"
    return f"{speed.words}{against_words(evaluation)}"
