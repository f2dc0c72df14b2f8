"""The cases of an evaluation as rows. Every surface shows columns of these rows, and none computes a time or a ratio itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from harness import Evaluation, Latency, Outcome
from harness.wire.results.latency import Bound, Timed, Window
from harness.wire.results.provenance import same_provenance
from harness.wire.results.ratios import FLOORS
from harness.wire.results.roofs import RoofShare, is_launch_bound, peak_share, roof_share

from .figure_words import measured_words, ratio_words, us_words
from .speed import speed_of
from .state import AttemptState

NOT_TIMED = "not timed"


class SideTime(NamedTuple):
    """The time of one side of a case."""

    ms: float | None = None
    """Median of a call in milliseconds."""
    is_hidden: bool = False
    """True if the launch hides it: too near an empty kernel's time to be known exactly. The side takes less than this median."""
    timed: Timed | None = None
    """Its samples; `None` if they are unknown."""

    def __str__(self) -> str:
        """`130.2` in microseconds, or `<18.0`. A bound of the ratio is from the same medians."""
        return f"{'<' if self.is_hidden else ''}{us_words(self.ms)}"


NO_TIME = SideTime()


@dataclass(frozen=True, slots=True)
class CaseRow:
    """One case on one device: both times, their ratio, and how far each is known."""

    case: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Sizes on a GPU; empty if unknown."""
    device: str = ""
    """Empty for a case without a time."""
    against: str = ""
    """Name of the timing baseline."""
    baseline: SideTime = NO_TIME
    candidate: SideTime = NO_TIME
    speedup: float | None = None
    """Baseline over candidate; `None` without a ratio."""
    sign: str = ""
    """`>=` or `<=` if the speedup is a bound."""
    low: float | None = None
    """Lower end of the 95 % interval; `None` if it is unknown."""
    high: float | None = None
    outcome: Outcome | None = None
    """`None` for a case without a time."""
    reason: str = NOT_TIMED
    """Why there is no ratio: `too short` or `not timed`; empty with a ratio."""
    roof: RoofShare | None = None
    """Share of the practical roof that limits the case."""
    peak: RoofShare | None = None
    """The larger share of the vendor's peaks."""
    limit: str = ""
    """The limit of the candidate: `memory`, `compute`, `compute peak` or `launch`; empty if unknown."""
    suspect: str = ""
    """Why a share above the hardware's limit is wrong; empty if none is above."""
    gain: float | None = None
    """How much faster the candidate is than the attempt before, minus 1; `None` if either time is hidden or unknown."""
    latency: Latency | None = None
    """All that was measured; `None` for a case without a time."""

    @property
    def key(self) -> str:
        """`GPU|case`."""
        return f"{self.device}|{self.case}"

    @property
    def window(self) -> Window | None:
        """Telemetry during the timing; `None` if it is unknown."""
        return self.latency.window if self.latency is not None else None

    @property
    def shape(self) -> str:
        """`8192x4097`; empty if the sizes are unknown."""
        return "x".join(map(str, self.sizes.values()))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval; `None` for a bound, and if it is unknown."""
        return None if self.sign or self.low is None or self.high is None else (self.low, self.high)

    @property
    def figure(self) -> str:
        """The speedup, `1.84x` or `>= 2.03x`; `-` without a ratio."""
        return ratio_words(self.speedup, self.sign)

    @property
    def words(self) -> str:
        """The speedup with its interval, `1.84x [1.78, 1.88]` or `>= 2.03x`; without a ratio the reason."""
        if self.speedup is None:
            return self.reason
        return measured_words(self.speedup, self.sign, self.low, self.high)


def case_rows(
    evaluation: Evaluation,
    baseline: str = "",
    *,
    judged: Evaluation | None = None,
    before: Evaluation | None = None,
) -> list[CaseRow]:
    """Returns a row for each timed case and device, then one for each case without a time; empty if nothing was timed.

    `baseline` is the name of the baseline for latencies without a name. `judged` is the evaluation that knows sizes which this
    one lacks, `before` that of the attempt from which this one was made.
    """
    if not evaluation.latency:
        return []
    full_sizes = (*(judged.full_sizes if judged is not None else ()), *evaluation.full_sizes)
    sizes = {full_size.case: full_size.sizes for full_size in full_sizes}
    earlier = (
        {
            (timed.device, timed.case): _side(timed, timed.candidate_ms, timed.candidate)
            for timed in before.latency
        }
        if before
        else {}
    )
    rows = []
    for timed in evaluation.latency:
        roof, candidate = roof_share(timed), _side(timed, timed.candidate_ms, timed.candidate)
        then = earlier.get((timed.device, timed.case), NO_TIME)
        gain = None
        if then.ms and candidate.ms and not (then.is_hidden or candidate.is_hidden):
            gain = then.ms / candidate.ms - 1
        low, high = timed.ci or (None, None)
        rows.append(
            CaseRow(
                case=timed.case,
                sizes=sizes.get(timed.case, {}),
                device=timed.device,
                against=timed.against or baseline,
                baseline=_side(timed, timed.baseline_ms, timed.baseline),
                candidate=candidate,
                speedup=timed.speedup,
                sign=timed.bound.sign,
                low=low,
                high=high,
                outcome=timed.outcome,
                reason=timed.outcome.value if timed.speedup is None else "",
                roof=roof,
                peak=peak_share(timed),
                limit="launch" if is_launch_bound(timed) else roof.limit_words if roof is not None else "",
                suspect=timed.efficiency.suspect if timed.efficiency is not None else "",
                gain=gain,
                latency=timed,
            )
        )
    return [*rows, *(CaseRow(case, sizes.get(case, {})) for case in evaluation.not_timed)]


def attempt_cases(attempt: AttemptState, before: AttemptState | None = None) -> list[CaseRow]:
    """Returns the cases of an attempt with the times that count, beside those of an attempt before if they are compared."""
    timed = attempt.timed_evaluation
    if timed is None:
        return []
    is_compared = before is not None and not is_apart(attempt, before)
    return case_rows(
        timed,
        judged=attempt.evaluation,
        before=before.timed_evaluation if before is not None and is_compared else None,
    )


def is_apart(attempt: AttemptState, before: AttemptState) -> bool:
    """True if two timed attempts have figures that are not compared: other hardware or software timed them."""
    first, second = attempt.timed, before.timed
    if first is None or second is None or first.speed is None or second.speed is None:
        return False
    return not same_provenance(first.provenance, second.provenance)


def gain(attempt: AttemptState, before: AttemptState) -> float | None:
    """Returns how much faster an attempt is than an earlier one, minus 1, on the cases that both timed.

    A case that only one of them timed exactly is left out; a case that neither timed exactly counts as unchanged. `None` if
    no case has an exact ratio in both, if their tasks have another number of cases, or if they are apart (`is_apart`).
    """
    speed, earlier = attempt.speed, before.speed
    if speed is None or earlier is None or speed.all_cases != earlier.all_cases or is_apart(attempt, before):
        return None
    pair = attempt.timed_evaluation, before.timed_evaluation
    exactness = [_exactness(evaluation) for evaluation in pair if evaluation is not None]
    alike = frozenset(dict(frozenset.intersection(*(frozenset(cases.items()) for cases in exactness))))
    value, earlier_value = (_value_over(evaluation, alike) for evaluation in pair if evaluation is not None)
    return value / earlier_value - 1 if value is not None and earlier_value is not None else None


def _exactness(evaluation: Evaluation) -> dict[str, bool]:
    """Returns for each timed case whether its ratio is known and no bound, on all GPUs that timed it."""
    inexact = {
        timed.case for timed in evaluation.latency if not timed.speedup or timed.bound is not Bound.NONE
    }
    return {timed.case: timed.case not in inexact for timed in evaluation.latency}


def _value_over(evaluation: Evaluation, cases: frozenset[str]) -> float | None:
    """Returns the speed over these cases alone, without bounds; `None` if none of them has an exact ratio."""
    latency = tuple(
        timed
        if timed.bound is Bound.NONE
        else msgspec.structs.replace(timed, speedup=None, ci=None, bound=Bound.NONE)
        for timed in evaluation.latency
        if timed.case in cases
    )
    speed = speed_of(msgspec.structs.replace(evaluation, latency=latency, not_timed=()))
    return None if speed is None else speed.value


def _side(case: Latency, ms: float, timed: Timed | None) -> SideTime:
    return SideTime(ms, case.floor_ms is not None and ms < FLOORS[case.method] * case.floor_ms, timed)


class Roofs(NamedTuple):
    """The practical roofs of a device, as the shares of an evaluation imply them; `None` if unknown."""

    bytes_per_s: float | None
    flops_per_s: float | None
    share_of_peak: float | None
    """The copy's share of the vendor's peak bandwidth."""


def measured_roofs(evaluation: Evaluation) -> Roofs:
    """Returns the fastest copy and matrix product that the session measured on the evaluation's device."""
    used = [timed.efficiency for timed in evaluation.latency if timed.efficiency is not None]
    products = [case.flops_per_s / case.mfu_measured for case in used if case.mfu_measured]
    copies = [
        (
            case.bytes_per_s / case.io_measured,
            case.io_utilisation / case.io_measured if case.io_utilisation else None,
        )
        for case in used
        if case.io_measured
    ]
    copy, share = max(copies, key=lambda pair: pair[0], default=(None, None))
    return Roofs(copy, max(products, default=None), share)
