"""The fastest measured attempts of a session's tasks, as its summary keeps them.

A speedup only compares with speedups of the same provenance and against the same timing baseline.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import msgspec

from harness import Verdict
from harness.wire.results.provenance import Provenance, compared_values
from harness.wire.results.ratios import TIE

from .ranking import in_steps
from .speed import Speed
from .state import AttemptState, Confirmation, SessionState
from .winners import place


class MeasuredBest(msgspec.Struct, frozen=True, kw_only=True):
    """A measured attempt, as a summary keeps the best of each task."""

    task: str
    """Full name, `suite/task`."""
    attempt: str
    confirmed: bool
    """True if the exam confirmed it."""
    speed: Speed
    product: str
    """Product of the device; its name in the session if the product is not known."""
    against: str
    """Name of the timing baseline."""
    provenance: Provenance | None = None
    """`None` if it is not known."""
    judged: float = 0.0
    """Time of the verdict, seconds since the epoch, UTC."""


class BestKey(NamedTuple):
    """Measured attempts with the same key compare with each other."""

    task: str
    product: str
    against: str
    provenance: tuple[str, ...]
    """`compared_values`."""


def best_key(measured: MeasuredBest) -> BestKey:
    """Returns the key of a measured attempt."""
    compared = compared_values(measured.provenance)
    return BestKey(measured.task, measured.product, measured.against, compared)


def measured_attempt(task: str, attempt: AttemptState) -> MeasuredBest | None:
    """Returns the measurement of an attempt; `None` if it was not timed, is not correct or failed its exam."""
    timed = attempt.timed
    if (
        timed is None
        or timed.speed is None
        or attempt.verdict is not Verdict.CORRECT
        or attempt.confirmation is Confirmation.NOT_CONFIRMED
    ):
        return None
    return MeasuredBest(
        task=task,
        attempt=attempt.attempt,
        confirmed=attempt.confirmation is Confirmation.CONFIRMED,
        speed=timed.speed,
        product=timed.product,
        against=sys.intern(", ".join(timed.against)),
        provenance=timed.provenance,
        judged=attempt.judged_wall,
    )


def measured_bests(state: SessionState, task: str | None = None) -> tuple[MeasuredBest, ...]:
    """Returns the best measured attempt of each task (or of one), provenance and baseline, in the order of the tasks.

    The best is chosen as by `best_of` of `sessions.state.winners`, so attempts that a person rejected do not count.
    """
    rivals: dict[BestKey, list[tuple[AttemptState, MeasuredBest]]] = {}
    for instance in state.instances.values():
        for attempt in instance.attempts if task in (None, instance.task) else ():
            measured = None if attempt.rejected else measured_attempt(instance.task, attempt)
            if measured is not None:
                rivals.setdefault(best_key(measured), []).append((attempt, measured))
    return tuple(max(pairs, key=lambda pair: place(pair[0]))[1] for pairs in rivals.values())


def order(measured: MeasuredBest) -> tuple[bool, float, float]:
    """Returns the sort key among attempts that compare: (confirmed, speed in steps of 1 %, earlier). Greater is better."""
    return measured.confirmed, in_steps(measured.speed.value, TIE), -measured.judged
