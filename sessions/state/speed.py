"""The speed of a correct attempt against its timing baseline: the number that ranks, and how every surface writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

import msgspec

from harness import Evaluation, Latency, Outcome, Verdict
from harness.wire.device import is_cpu
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import same_provenance

from .figure_words import measured_words, ratio_words, us_words

T = TypeVar("T")

CARRIES = 0.2
"""A case carries the mean of an attempt if the mean with it and the mean without it differ by more than this share."""
MIXED = "~"
"""Sign of a speed over lower and upper bounds: the true speed can be on either side."""


class Exact(msgspec.Struct, frozen=True):
    """The speed over the cases whose ratio is no bound."""

    value: float
    low: float | None
    high: float | None
    cases: int

    def __str__(self) -> str:
        """`1.30x [1.27, 1.33]`."""
        return measured_words(self.value, "", self.low, self.high)


class Speed(msgspec.Struct, frozen=True):
    """The speed of an attempt over all open cases of its task."""

    value: float
    """
    Geometric mean over all open cases of baseline time over candidate time; time-weighted if the cases have weights.

    A case without a ratio counts as 1.00, a lower bound with its value, an upper bound with at most 1.00.
    """
    low: float | None = None
    """Lower end of the 95 % interval; `None` if a case with a ratio has no interval."""
    high: float | None = None
    sign: str = ""
    """`>=` if a case is a lower bound, `<=` if one is an upper bound, `~` with both, else empty."""
    cases: int = 0
    """Cases with a ratio."""
    all_cases: int = 0
    exact: Exact | None = None
    """The exact cases alone; `None` if all cases are exact, or none is."""
    weighted: bool = False
    """True if it is the ratio of the times of all calls, of which each case has its share."""

    @property
    def mean(self) -> str:
        """Name of the mean over the cases."""
        return "time-weighted mean" if self.weighted else "geometric mean"

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; `None` for a bound, and if a case has none."""
        if self.sign or self.low is None or self.high is None:
            return None
        return self.low, self.high

    @property
    def is_gain(self) -> bool:
        """True if the whole interval is above 1, and with a lower bound also that of the exact cases alone.

        Only then a screen shows the speed as better.
        """
        bounded = self.exact if self.sign == Bound.AT_LEAST.sign else None
        lows = [self.low, bounded.low] if bounded is not None else [self.low]
        return (not self.sign or bounded is not None) and all(low is not None and low > 1.0 for low in lows)

    @property
    def is_loss(self) -> bool:
        """True if the whole interval is below 1."""
        return self.sign in ("", Bound.AT_MOST.sign) and self.high is not None and self.high < 1.0

    @property
    def figure(self) -> str:
        """`1.81x`, or `>= 2.03x` if a bound is in it."""
        return ratio_words(self.value, self.sign)

    @property
    def exact_words(self) -> str:
        """`1.30x exact, 4 of 6`: the exact cases alone; empty if all cases are exact, or none is."""
        return "" if self.exact is None else f"{self.exact} exact, {self.exact.cases} of {self.all_cases}"

    def __str__(self) -> str:
        """`1.81x [1.77, 1.84]`, or `>= 2.03x`."""
        return measured_words(self.value, self.sign, self.low, self.high)

    @property
    def words(self) -> str:
        """`1.81x [1.77, 1.84]`, or `>= 2.03x; 1.30x [1.27, 1.33] exact, 4 of 6`; `time-weighted` if it is."""
        label = " time-weighted" if self.weighted else ""
        return "; ".join(filter(None, (f"{self}{label}", self.exact_words)))


def baselines_of(evaluation: Evaluation) -> tuple[str, ...]:
    """Returns the names of the timing baselines of an evaluation; none if nothing was timed."""
    return tuple(dict.fromkeys(latency.against for latency in evaluation.latency if latency.against))


def baseline_names(*evaluations: Evaluation | None) -> str:
    """Returns the names of the timing baselines, `triton, eager`; empty if nothing was timed."""
    names = (baselines_of(evaluation) for evaluation in evaluations if evaluation is not None)
    return ", ".join(dict.fromkeys(chain.from_iterable(names)))


def speed_of(evaluation: Evaluation) -> Speed | None:
    """Returns the speed of an evaluation; `None` if it is not correct, or no case has a ratio."""
    compared = [latency for latency in evaluation.latency if latency.speedup]
    if evaluation.verdict is not Verdict.CORRECT or not compared:
        return None
    all_cases = len(evaluation.latency) + len(evaluation.not_timed)
    exact = [latency for latency in compared if latency.bound is Bound.NONE]
    weights = evaluation.case_weights
    if weights:
        without_ratio = [latency.case for latency in evaluation.latency if not latency.speedup]
        rest = math.fsum(weights[name] for name in (*without_ratio, *evaluation.not_timed))
        weighted_ci = evaluation.speedup_weighted_ci
        value, low, high = _weighted_mean(compared, weights, rest, weighted_ci)
        of_exact = _weighted_mean(exact, weights, 0.0, weighted_ci) if exact else (1.0, None, None)
    else:
        exact_ci = evaluation.speedup_geomean_ci
        value, low, high = _geometric_mean(compared, all_cases, exact_ci)
        of_exact = _geometric_mean(exact, len(exact), exact_ci) if exact else (1.0, None, None)
    return Speed(
        value,
        low,
        high,
        joint_sign(latency.bound.sign for latency in compared),
        len(compared),
        all_cases,
        Exact(*of_exact, len(exact)) if 0 < len(exact) < all_cases else None,
        weighted=bool(weights),
    )


def carrying_case(evaluation: Evaluation) -> tuple[Latency, Speed] | None:
    """Returns the case without which the geometric mean differs most, and the mean without it.

    `None` if no case changes the mean by more than `CARRIES`, if weights are given, or without a ratio in other cases.
    """
    whole = speed_of(evaluation)
    if whole is None or whole.weighted:
        return None
    most: tuple[Latency, Speed] | None = None
    change = math.log1p(CARRIES)
    for case in evaluation.latency:
        others = tuple(latency for latency in evaluation.latency if latency is not case)
        rest = speed_of(msgspec.structs.replace(evaluation, latency=others, speedup_geomean_ci=None))
        if case.speedup and rest is not None and abs(math.log(whole.value / rest.value)) > change:
            most, change = (case, rest), abs(math.log(whole.value / rest.value))
    return most


def joint_sign(signs: Iterable[str]) -> str:
    """Returns the sign of a mean over ratios with these signs: the one that there is, or `MIXED`; empty without bounds."""
    bounds = set(signs) - {""}
    return bounds.pop() if len(bounds) == 1 else MIXED if bounds else ""


def fastest_first(items: Iterable[T], speed: Callable[[T], Speed | None]) -> list[T]:
    """Returns items by their speed, those without one last; equal items stay in their order."""
    return sorted(
        items, key=lambda item: own.value if (own := speed(item)) is not None else -math.inf, reverse=True
    )


def are_comparable(first: Evaluation | None, second: Evaluation | None) -> bool:
    """Returns whether the figures of two evaluations are compared. An attempt that is not judged has no figures."""
    return first is None or second is None or same_provenance(first.provenance, second.provenance)


def missing_speed(evaluation: Evaluation) -> str:
    """Returns why an evaluation has no speed: not timed, no GPU, all cases too short; empty if it has one."""
    if speed_of(evaluation) is not None:
        return ""
    if evaluation.verdict is not Verdict.CORRECT:
        failed = next((stage.name for stage in evaluation.stages if stage.ok is False), None)
        return f"timing not reached, the judge stopped at stage {failed}" if failed else "timing not reached"
    if evaluation.latency and all(latency.outcome is Outcome.TOO_SHORT for latency in evaluation.latency):
        floors = [latency.floor_ms for latency in evaluation.latency if latency.floor_ms is not None]
        floor = f" ({us_words(max(floors))} us)" if floors else ""
        return f"all cases too short: both sides take about as long as an empty kernel{floor}"
    if is_cpu(evaluation.device):
        return "no GPU judged it"
    if evaluation.why_not_timed:
        return evaluation.why_not_timed
    timing = next((stage for stage in evaluation.stages if stage.name == "performance"), None)
    if timing is not None and timing.detail:
        return timing.detail
    return f"device {evaluation.device} gave no latency"


def _geometric_mean(
    latencies: Sequence[Latency], cases: int, exact_ci: tuple[float, float] | None
) -> tuple[float, float | None, float | None]:
    """The mean over `cases` with its interval; cases that are not given count as 1.00.

    `exact_ci` is the interval of the geometric mean over the exact cases. Bounds add independent errors of the logarithms. So
    do exact cases without `exact_ci`, in old evaluations.
    """
    value = math.exp(math.fsum(math.log(_counted_ratio(latency)) for latency in latencies) / cases)
    exact = [latency for latency in latencies if latency.bound is Bound.NONE]
    alone = [latency for latency in latencies if exact_ci is None or latency.bound is not Bound.NONE]
    halves = [
        (math.log(latency.ci[1]) - math.log(latency.ci[0])) / 2
        for latency in alone
        if latency.ci is not None and min(latency.ci) > 0
    ]
    if len(halves) < len(alone):
        return value, None, None
    below, above = list(halves), list(halves)
    if exact and exact_ci is not None:
        middle = math.fsum(math.log(_counted_ratio(latency)) for latency in exact)
        below.append(middle - len(exact) * math.log(exact_ci[0]))
        above.append(len(exact) * math.log(exact_ci[1]) - middle)
    low, high = math.exp(-math.hypot(*below) / cases), math.exp(math.hypot(*above) / cases)
    return value, value * low, value * high


def _weighted_mean(
    latencies: Sequence[Latency],
    weights: Mapping[str, float],
    rest: float,
    exact_ci: tuple[float, float] | None,
) -> tuple[float, float | None, float | None]:
    """The baseline's time for all calls over the candidate's, with its interval; cases with the weight `rest` count as 1.00.

    The ends of the interval add those of the exact cases together, `exact_ci`, and those of each bound, as if they came together.
    """
    whole = rest + math.fsum(weights[latency.case] for latency in latencies)
    bounds = [latency for latency in latencies if latency.bound is not Bound.NONE]
    exact = math.fsum(weights[latency.case] for latency in latencies if latency.bound is Bound.NONE)
    value = whole / (
        rest + math.fsum(weights[latency.case] / _counted_ratio(latency) for latency in latencies)
    )
    intervals = [latency.ci for latency in bounds if latency.ci is not None and min(latency.ci) > 0]
    if (exact and exact_ci is None) or len(intervals) < len(bounds):
        return value, None, None
    ends = []
    for end in (0, 1):
        times = [
            weights[latency.case] / (min(ci[end], 1.0) if latency.bound is Bound.AT_MOST else ci[end])
            for latency, ci in zip(bounds, intervals, strict=True)
        ]
        ends.append(
            whole / (rest + math.fsum(times) + (exact / exact_ci[end] if exact_ci and exact else 0.0))
        )
    return value, ends[0], ends[1]


def _counted_ratio(latency: Latency) -> float:
    ratio = latency.speedup or 1.0
    return min(ratio, 1.0) if latency.bound is Bound.AT_MOST else ratio
