"""The best configuration of each case, from the judged attempts of a session of `tune`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness import Verdict
from harness.wire.results.provenance import Provenance
from harness.wire.results.ratios import TIE
from sessions.names import split_attempt
from sessions.state.cases import CaseRow, attempt_cases
from sessions.state.ranking import in_steps
from sessions.state.speed import are_comparable
from sessions.state.state import AttemptState, Confirmation, SessionState

from .launch_config import Config, launch_config


@dataclass(frozen=True, slots=True)
class CaseBest:
    """A case with the attempt that has the best configuration for it."""

    row: CaseRow
    attempt: str
    config: Config
    provenance: Provenance | None
    is_faster: bool = False
    """True if it was measured as faster than the start of the sweep."""


def best_by_case(state: SessionState, task: str) -> list[CaseBest]:
    """Returns the best configuration of each open case of a task, in the order of the cases.

    It is the start of the sweep, unless the whole interval of another correct attempt is faster than the start's time. Empty
    without times, and for other methods than `tune`.
    """
    judged = list(_judged(state, task))
    if not judged or split_attempt(judged[0].attempt).number != 1:  # the start failed its exam
        return []
    start = judged[0].timed_evaluation
    by_case: dict[str, list[CaseBest]] = {}
    for attempt in judged:
        timed = attempt.timed_evaluation
        if timed is None or not are_comparable(start, timed):
            continue
        config = launch_config(attempt.source or "")
        for row in attempt_cases(attempt):
            if row.latency is not None:
                rivals = by_case.setdefault(row.case, [])
                rivals.append(CaseBest(row, attempt.attempt, config, timed.provenance))
    return [best for rivals in by_case.values() if (best := _fastest(judged[0].attempt, rivals)) is not None]


def _fastest(start: str, rivals: Sequence[CaseBest]) -> CaseBest | None:
    """The fastest attempt at a case; `None` if the start was not timed there and nothing is faster."""
    at_start = next((best for best in rivals if best.attempt == start), None)
    to_beat = (at_start.row.speedup if at_start is not None else None) or 1.0
    faster = [
        best
        for best in rivals
        if best.row.low is not None and best.row.low > to_beat and best.attempt != start
    ]
    if faster:
        fastest = max(faster, key=lambda best: in_steps(best.row.speedup or 1.0, TIE))
        return replace(fastest, is_faster=True)
    return at_start


def _judged(state: SessionState, task: str) -> Iterator[AttemptState]:
    """Yield the correct attempts of a sweep that did not fail their exam, the start first."""
    if state.started is None or state.started.method != "tune":
        return
    for attempt in state.attempts():
        if (
            state.instances[split_attempt(attempt.attempt).instance].task == task
            and attempt.verdict is Verdict.CORRECT
            and attempt.confirmation is not Confirmation.NOT_CONFIRMED
        ):
            yield attempt
