"""Rules that end an instance before its iterations are spent, because another attempt is not worth its cost.

All rules read measured times. Where nothing is timed (`cpu`) none applies: counted bytes say too little about
speed to end a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness import Evaluation, Verdict
from harness.wire.results.latency import Bound, Latency
from harness.wire.results.provenance import Provenance, same_provenance
from harness.wire.results.roofs import is_launch_bound, roof_share
from sessions.events import EndReason, Origin
from sessions.settings import StopRules
from sessions.state.bests import shared_provenance
from sessions.state.speed import Speed, speed_of
from sessions.state.state import AttemptState, KeptFact

GAIN = 0.01
"""A speedup counts as a gain if it is greater than the best before by this share: less cannot be resolved."""
ROOF = 0.95
"""Share of the practical roof from which a case counts as at the roof."""


class Timing(NamedTuple):
    """The facts of a timed evaluation that the rules read."""

    speed: Speed
    provenance: Provenance | None
    at_roof: bool


Timed = Sequence[tuple[AttemptState, Timing]]
"""Attempts that count, in the order of their verdicts."""


class Stop(NamedTuple):
    """A rule that is met."""

    reason: EndReason
    why: str


def stop_of(rules: StopRules, attempts: Sequence[AttemptState], *, lanes: int = 1) -> Stop | None:
    """Returns the rule that ends an instance with these attempts; `None` if it goes on.

    `lanes` is the number of attempts that the instance makes at the same time. They do not see each other, so they
    count as one round.
    """
    if rules == StopRules():
        return None
    in_order = sorted(attempts, key=lambda attempt: attempt.judged_seq)
    timed = [(attempt, timing) for attempt in in_order if (timing := _counted(attempt)) is not None]
    return (
        _speedup_reached(timed, rules.speedup)
        or (_at_roof(timed) if rules.at_roof else None)
        or (_no_gain(timed, rules.without_gain * lanes) if rules.without_gain else None)
    )


def _counted(attempt: AttemptState) -> Timing | None:
    """The timing of a correct attempt that no person rejected; else `None`."""
    if attempt.verdict is not Verdict.CORRECT or attempt.rejected:
        return None
    kept = attempt.kept_timing
    if kept is None or not kept.is_of(attempt):
        kept = attempt.kept_timing = KeptFact.of(attempt, _timing(attempt.evaluation))
    timing: Timing | None = kept.value
    return timing


def _timing(evaluation: Evaluation | None) -> Timing | None:
    speed = speed_of(evaluation) if evaluation is not None else None
    if evaluation is None or speed is None:
        return None
    return Timing(speed, shared_provenance(evaluation.provenance), is_at_roof(evaluation))


def _speedup_reached(timed: Timed, wanted: float | None) -> Stop | None:
    for attempt, timing in timed:
        speed = timing.speed
        if wanted is not None and speed.value >= wanted and speed.sign in ("", Bound.AT_LEAST.sign):
            why = f"{attempt.attempt} reached {speed.figure}, and {wanted:g}x was wanted"
            return Stop(EndReason.SPEEDUP_REACHED, why)
    return None


def _at_roof(timed: Timed) -> Stop | None:
    for attempt, timing in timed:
        if timing.at_roof:
            why = f"{attempt.attempt} reaches {ROOF:.0%} of the practical roof in every case that is long enough"
            return Stop(EndReason.AT_ROOF, why)
    return None


def is_at_roof(evaluation: Evaluation) -> bool:
    """True if every timed case is at the practical roof of memory or compute.

    Cases that take hardly longer than an empty kernel do not count. False if a case was not timed, or if no case
    counts.
    """
    long_enough = [latency for latency in evaluation.latency if not is_launch_bound(latency)]
    return bool(long_enough) and not evaluation.not_timed and all(map(_reaches_roof, long_enough))


def _reaches_roof(latency: Latency) -> bool:
    reached = roof_share(latency)
    return reached is not None and reached.share >= ROOF


def _no_gain(timed: Timed, most: int) -> Stop | None:
    best, without_gain = 0.0, 0
    newest = timed[-1][1].provenance if timed else None
    for attempt, timing in timed:
        if not same_provenance(timing.provenance, newest):
            continue  # timed before the session went on with other hardware or software
        speed = timing.speed
        if speed.value > best * (1 + GAIN):
            without_gain = 0
        elif attempt.origin is not Origin.TUNE:  # a variant of a sweep costs no reply
            without_gain += 1
        best = max(best, speed.value)
    if without_gain < most:
        return None
    why = f"{without_gain} correct attempts in a row gained less than {GAIN:.0%} in speedup"
    return Stop(EndReason.NO_GAIN, why)
