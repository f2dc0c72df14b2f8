"""The overall speedup of an evaluation: geometric mean over cases, with its interval and what it covers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from harness import Evaluation, Latency, Verdict
from harness.wire.latency import Bound

from .state import AttemptState


@dataclass(frozen=True, slots=True)
class Speedup:
    """A measured speedup against the timing baseline."""

    value: float
    """Geometric mean over the covered cases of baseline time over candidate time."""
    low: float | None
    """Lower end of the 95 % interval; `None` if a covered case has no interval."""
    high: float | None
    bound: Bound
    """`at least` if the launch floor hides a part of the speedup in a covered case; `about` for bounds of both kinds."""
    cases: int
    """Covered cases."""
    all_cases: int
    """Open cases of the task."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; `None` for a bound, and if a covered case has none."""
        if self.low is None or self.high is None or self.bound is not Bound.NONE:
            return None
        return self.low, self.high

    @property
    def is_gain(self) -> bool:
        """True if the interval, or a lower bound, is above 1: only then a screen shows the speedup as better."""
        return self.low is not None and self.low > 1.0 and self.bound in (Bound.NONE, Bound.AT_LEAST)

    @property
    def is_loss(self) -> bool:
        """True if the interval, or an upper bound, is below 1."""
        return self.high is not None and self.high < 1.0 and self.bound in (Bound.NONE, Bound.AT_MOST)


def speedup_of(evaluation: Evaluation) -> Speedup | None:
    """Return the speedup over all cases with a ratio; `None` if nothing was timed or the verdict is not *correct*."""
    if evaluation.verdict is not Verdict.CORRECT:
        return None
    return _over(_compared(evaluation), evaluation)


def exact_speedup(evaluation: Evaluation) -> Speedup | None:
    """Return the speedup over the cases whose ratio is no bound; `None` if there are none."""
    if evaluation.verdict is not Verdict.CORRECT:
        return None
    exact = [latency for latency in _compared(evaluation) if latency.bound is Bound.NONE]
    return _over(exact, evaluation)


def headline_speedup(evaluation: Evaluation) -> Speedup | None:
    """Return the speedup that lists show and sort by: over the cases that are no bounds, else over all as a bound.

    A lower bound in one case would lift the mean of all, by an amount that nobody measured.
    """
    return exact_speedup(evaluation) or speedup_of(evaluation)


def attempt_speedup(attempt: AttemptState) -> Speedup | None:
    """Return an attempt's speedup: as the exam confirmed it, else as it was found; `None` if it was not timed."""
    evaluation = timed_evaluation(attempt)
    return headline_speedup(evaluation) if evaluation is not None else None


def timed_evaluation(attempt: AttemptState) -> Evaluation | None:
    """Return the evaluation whose times count: the exam's if it timed the attempt again; `None` if not judged."""
    again = attempt.exam is not None and attempt.speedup_confirmed is not None
    return attempt.exam if again else attempt.evaluation


def _compared(evaluation: Evaluation) -> list[Latency]:
    return [latency for latency in evaluation.latency if latency.speedup is not None]


def _over(compared: Sequence[Latency], evaluation: Evaluation) -> Speedup | None:
    """The interval combines those of the cases as independent errors of the logarithms."""
    ratios = [latency.speedup for latency in compared if latency.speedup]
    if not ratios:
        return None
    value = math.exp(math.fsum(map(math.log, ratios)) / len(ratios))
    halves = [
        (math.log(latency.ci[1]) - math.log(latency.ci[0])) / 2
        for latency in compared
        if latency.ci is not None and min(latency.ci) > 0
    ]
    low = high = None
    if len(halves) == len(ratios):
        half = math.hypot(*halves) / len(halves)
        low, high = value * math.exp(-half), value * math.exp(half)
    bound = Bound.of_mean(latency.bound for latency in compared)
    all_cases = len(evaluation.latency) + len(evaluation.not_timed)
    return Speedup(value, low, high, bound, len(ratios), all_cases)
