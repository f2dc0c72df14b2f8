"""Times of an attempt by case and GPU, and why a time is missing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_uppercase

from harness import Evaluation, Verdict
from sessions.events import WinnerMeasured
from sessions.state.cases import CaseRow, attempt_cases, case_rows
from sessions.state.state import AttemptState, SessionState
from tui.facts.evaluation.verdict import failure_words
from tui.facts.vocabulary import UNKNOWN, letter

BASELINE = "base"
"""Title of the baseline's column."""


class Missing(StrEnum):
    """Why a GPU has no time for an attempt; the value is what its cells show."""

    UNKNOWN = UNKNOWN
    LOST = "lost"
    ASKED = "t"
    """A person asked for the time; it is not there yet."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a GPU has no times."""

    mark: str
    """Text of its cells: a `Missing`, or the letter of a verdict."""
    words: str


@dataclass(frozen=True, slots=True)
class Timings:
    """Times of one attempt by GPU and case."""

    attempt: AttemptState
    evaluation: Evaluation
    device: str
    """The GPU of the speedup: there the exam timed the attempt again, else the verdict did."""
    devices: tuple[str, ...]
    cases: tuple[CaseRow, ...]
    """The rows that the speedup is from, one a case; without times if that GPU did not time the case."""
    by_place: dict[tuple[str, str], CaseRow]
    """Keys are GPU and name of the case."""
    again: dict[str, CaseRow]
    """Later times on the GPU of the speedup, by case."""
    reasons: dict[str, Reason]
    """Keys are the GPUs without times."""

    def letter(self, case: CaseRow) -> str:
        """Return `A` for the first case, `Z` for the 26th, then `a2`, `b2`, ..."""
        rounds, rest = divmod([row.case for row in self.cases].index(case.case), len(ascii_uppercase))
        return ascii_uppercase[rest] if not rounds else f"{ascii_uppercase[rest].lower()}{rounds + 1}"

    def gpu_range(self, case: CaseRow) -> float | None:
        """Return (longest - shortest) / median over GPUs that are comparable; `None` for less than two GPUs."""
        rows = [self.by_place.get((device, case.case)) for device in self.devices]
        times = [
            row.candidate.ms
            for row in rows
            if row is not None and row.candidate.ms and not (is_throttled(row) or row.candidate.is_hidden)
        ]
        if len(times) < 2:
            return None
        return (max(times) - min(times)) / statistics.median(times)


def timings_of(state: SessionState, attempt: AttemptState) -> Timings | None:
    """Return the times of an attempt, of its exam if that timed it again; `None` if no GPU timed it."""
    verdict, evaluation = attempt.evaluation, attempt.timed_evaluation
    measured = {again.device: again for again in attempt.spread}
    if (
        verdict is None
        or evaluation is None
        or not (evaluation.latency or any(again.evaluation.latency for again in measured.values()))
    ):
        return None
    own = evaluation.device if evaluation.latency else _first_timed(attempt.spread)
    # On another GPU than the exam's, the times of the verdict are shown until it is measured again.
    rows = [
        *(row for row in case_rows(verdict) if row.device != own),
        *(
            row
            for again in attempt.spread
            if again.device != own or not evaluation.latency
            for row in case_rows(again.evaluation, judged=verdict)
        ),
        *attempt_cases(attempt),
    ]
    by_place = {(row.device, row.case): row for row in rows if row.latency is not None}
    names = {row.case: row.sizes for row in attempt_cases(attempt) or rows}
    devices = tuple(dict.fromkeys([*state.gpus, *sorted({device for device, _ in by_place})]))
    timed = {device for device, _ in by_place}
    repeated = case_rows(measured[own].evaluation) if evaluation.latency and own in measured else ()
    return Timings(
        attempt,
        evaluation,
        own,
        devices,
        tuple(by_place.get((own, case), CaseRow(case, sizes)) for case, sizes in names.items()),
        by_place,
        {row.case: row for row in repeated if row.latency is not None},
        {
            device: _reason(state, attempt, device, measured.get(device))
            for device in devices
            if device not in timed
        },
    )


def _first_timed(spread: list[WinnerMeasured]) -> str:
    return min(again.device for again in spread if again.evaluation.latency)


def _reason(state: SessionState, attempt: AttemptState, device: str, again: WinnerMeasured | None) -> Reason:
    sample = state.devices.get(device)
    if any(ask.attempt == attempt.attempt and device in ask.devices for ask in state.measures):
        return Reason(Missing.ASKED, "asked for, not timed yet")
    if sample is not None and sample.quarantined:
        return Reason(Missing.LOST, sample.quarantined)
    if again is not None:
        return _failed(again.evaluation)
    if sample is not None and sample.waits_for:
        return Reason(Missing.UNKNOWN, f"in use: {', '.join(sample.waits_for)}")
    if device in state.lent:
        return Reason(Missing.UNKNOWN, "lent to others")
    return Reason(Missing.UNKNOWN, "not timed")


def _failed(evaluation: Evaluation) -> Reason:
    if evaluation.verdict is Verdict.CORRECT:
        why = evaluation.error.first_line if evaluation.error is not None else "correct, but not timed"
        return Reason(Missing.UNKNOWN, why)
    mark = letter(evaluation.verdict) if evaluation.verdict.counted else Missing.UNKNOWN
    return Reason(mark, failure_words(evaluation))


def is_throttled(row: CaseRow) -> bool:
    """True if the GPU held its clock back during the timing."""
    return row.window is not None and bool(row.window.throttled)


def gpu_name(device: str) -> str:
    """Return `GPU2`."""
    return f"GPU{device}" if device.isdigit() else device
