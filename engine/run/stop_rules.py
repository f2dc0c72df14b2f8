"""Rules that end an instance before its iterations are spent, because another attempt is not worth its cost.

All rules read measured times. Where nothing is timed (`cpu`) none applies: counted bytes say too little about
speed to end a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness import Verdict
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import same_provenance
from harness.wire.results.ratios import TIE
from sessions.events import EndReason, Origin
from sessions.settings import StopRules
from sessions.state.judged import JudgedFacts
from sessions.state.state import AttemptState

Timed = Sequence[tuple[AttemptState, JudgedFacts]]
"""Attempts that count, in the order of their verdicts."""


class MetRule(NamedTuple):
    """A rule that is met."""

    reason: EndReason
    why: str


def stop_of(rules: StopRules, attempts: Sequence[AttemptState], *, lanes: int = 1) -> MetRule | None:
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


def _counted(attempt: AttemptState) -> JudgedFacts | None:
    """The timing of a correct attempt that no person rejected; else `None`."""
    if attempt.verdict is not Verdict.CORRECT or attempt.rejected:
        return None
    return attempt.judged if attempt.judged is not None and attempt.judged.is_timed else None


def _speedup_reached(timed: Timed, wanted: float | None) -> MetRule | None:
    for attempt, timing in timed:
        speed = timing.speed
        if (
            speed is not None
            and wanted is not None
            and speed.value >= wanted
            and speed.sign in ("", Bound.AT_LEAST.sign)
        ):
            why = f"{attempt.attempt} reached {speed.figure}, and {wanted:g}x was wanted"
            return MetRule(EndReason.SPEEDUP_REACHED, why)
    return None


def _at_roof(timed: Timed) -> MetRule | None:
    for attempt, timing in timed:
        if timing.at_roof:
            why = f"each case of {attempt.attempt} is at its practical roof, or hardly longer than an empty kernel"
            return MetRule(EndReason.AT_ROOF, why)
    return None


def _no_gain(timed: Timed, most: int) -> MetRule | None:
    best, without_gain = 0.0, 0
    newest = timed[-1][1].provenance if timed else None
    for attempt, timing in timed:
        if not same_provenance(timing.provenance, newest):
            continue  # timed before the session went on with other hardware or software
        if timing.speed is None:
            continue
        speed = timing.speed
        if speed.value > best * (1 + TIE):
            without_gain = 0
        elif attempt.origin is not Origin.TUNE:  # a variant of a sweep costs no reply
            without_gain += 1
        best = max(best, speed.value)
    if without_gain < most:
        return None
    why = f"{without_gain} correct attempts in a row gained less than {TIE:.0%} in speedup"
    return MetRule(EndReason.NO_GAIN, why)
