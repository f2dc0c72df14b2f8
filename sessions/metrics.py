"""The field's metrics, each defined once with its source, and the order that says which of two attempts is better.

Evaluations whose verdict is not `counted` (unsupported, cancelled, our own failure) are left out of every share and mean.
What cannot be known is `None`: the mean of nothing is not 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import NamedTuple

from harness import Evaluation, Verdict
from harness.wire.evaluation import KernelResources

UNKNOWN = -math.inf
Z95 = NormalDist().inv_cdf(0.975)
"""Standard deviations on either side that hold 95 % of a normal distribution."""


class Rank(NamedTuple):
    """What decides between two evaluations of one task, most important first; greater is better."""

    standing: int
    """3 correct and timed, 2 correct, 1 failed, 0 not counted."""
    stages_passed: int
    """How far a failed one came; 0 for correct ones, which all came through."""
    speedup: float
    """Measured; `-inf` where nothing was."""
    estimate: float
    """Minus the geometric mean of upper over lower bound of the roofline estimates: nearer to the roofline is better."""
    traffic: float
    """Minus requested over minimal bytes: sampled at `gpu` sizes, else counted at `cpu` sizes."""
    spills: float
    """Minus registers spilled (and spilled bytes, where a target counts those), all kernels together."""
    occupancy: float
    """The lowest of its kernels."""


def rank(evaluation: Evaluation) -> Rank:
    """The order of attempts at one task: correct before failed, measured speed before all that is only estimated.

    Where nothing was timed it ranks by what is known: estimate, bytes requested against minimal, spills, occupancy.
    That order is a guess about speed and is called one wherever it is shown.
    """
    correct = evaluation.verdict is Verdict.CORRECT
    if not correct:
        passed = sum(stage.ok is True for stage in evaluation.stages)
        standing = 1 if evaluation.verdict.counted else 0
        return Rank(standing, passed, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    speedup = evaluation.speedup
    return Rank(
        3 if speedup is not None else 2,
        0,
        UNKNOWN if speedup is None else speedup,
        _estimate_rank(evaluation),
        _traffic_rank(evaluation),
        _spill_rank(evaluation),
        _occupancy_rank(evaluation),
    )


def _estimate_rank(evaluation: Evaluation) -> float:
    ratios = [
        each.high_us / each.low_us for each in evaluation.estimate if min(each.low_us, each.high_us) > 0
    ]
    return -_geomean(ratios) if ratios else UNKNOWN


def _traffic_rank(evaluation: Evaluation) -> float:
    cases = evaluation.sampled or evaluation.traffic
    minimal = sum(case.minimal_bytes for case in cases)
    requested = sum(case.requested_read_bytes + case.requested_write_bytes for case in cases)
    return -requested / minimal if minimal > 0 else UNKNOWN


def _spill_rank(evaluation: Evaluation) -> float:
    counts = [
        count
        for configs in _launched(evaluation)
        if (count := min((_spills(each) for each in configs), default=None)) is not None
    ]
    return float(-sum(counts)) if counts else UNKNOWN


def _occupancy_rank(evaluation: Evaluation) -> float:
    known = [
        max(each.occupancy for each in configs if each.occupancy is not None)
        for configs in _launched(evaluation)
        if any(each.occupancy is not None for each in configs)
    ]
    return min(known, default=UNKNOWN)


def _launched(evaluation: Evaluation) -> list[list[KernelResources]]:
    """Configs that run, by launch: of an autotuned kernel the best one counts, as that is what a device would choose."""
    launches: dict[tuple[str, str, str, str], list[KernelResources]] = {}
    for target, kernels in evaluation.resources.items():
        for each in kernels:
            if not each.failure:
                alone = "" if each.autotune_index is not None else each.binary_sha256
                launches.setdefault((target, each.kernel, each.case, alone), []).append(each)
    return list(launches.values())


def _spills(kernel: KernelResources) -> int:
    return sum(count or 0 for count in (kernel.vgpr_spills, kernel.sgpr_spills, kernel.spill_bytes))


def call_accuracy(evaluations: Iterable[Evaluation]) -> float | None:
    """Share that imports and runs on the first case, 0 to 1 (source: TritonBench, "call accuracy")."""
    return _share([each.call for each in _counted(evaluations)])


def execution_accuracy(evaluations: Iterable[Evaluation]) -> float | None:
    """Share that is correct, 0 to 1 (source: TritonBench, "execution accuracy"; here a trick caught later is none)."""
    return _share([each.verdict is Verdict.CORRECT for each in _counted(evaluations)])


def correct_per_compile(evaluations: Iterable[Evaluation]) -> float | None:
    """Correct ones among those that compile and run, 0 to 1 (source: KernelBench-X, "Correct/Compile")."""
    return _share([each.verdict is Verdict.CORRECT for each in _counted(evaluations) if each.call])


def speedup_mean(evaluations: Iterable[Evaluation]) -> float | None:
    """Arithmetic mean of the measured speedups of correct ones (source: GEAK)."""
    speedups = _speedups(evaluations)
    return math.fsum(speedups) / len(speedups) if speedups else None


def speedup_geomean(evaluations: Iterable[Evaluation]) -> float | None:
    """Geometric mean of the measured speedups of correct ones (source: Fleming and Wallace, CACM 29(3), 1986)."""
    speedups = _speedups(evaluations)
    return _geomean(speedups) if speedups else None


def fast_p(evaluations: Iterable[Evaluation], p: float) -> float | None:
    """Share that is correct and more than `p` times as fast as the baseline (source: KernelBench; strict `>`).

    `None` when a correct one was never timed and `p` asks for speed: what it would add is unknown. `fast_p(0)` is
    execution accuracy.
    """
    counted = _counted(evaluations)
    if p <= 0:
        return execution_accuracy(counted)
    correct = [each for each in counted if each.verdict is Verdict.CORRECT]
    if any(each.speedup is None for each in correct):
        return None
    fast = sum(each.speedup is not None and each.speedup > p for each in correct)
    return fast / len(counted) if counted else None


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Chance that at least one of `k` samples drawn from these is correct, unbiased (source: Chen et al., 2021).

    1 - C(n - c, k) / C(n, k), in exact integers until the last division. `ValueError` unless 1 <= k <= samples and
    0 <= correct <= samples.
    """
    if not (1 <= k <= samples and 0 <= correct <= samples):
        raise ValueError(f"pass@{k} of {samples} samples with {correct} correct does not exist")
    draws = math.comb(samples, k)
    return (draws - math.comb(samples - correct, k)) / draws


def mean_pass_at_k(tasks: Sequence[tuple[int, int]], k: int) -> float | None:
    """Mean of `pass_at_k` over tasks given as (samples, correct); `None` when a task has fewer than `k` samples."""
    if not tasks or any(samples < k for samples, _ in tasks):
        return None
    return math.fsum(pass_at_k(samples, correct, k) for samples, correct in tasks) / len(tasks)


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Where a share lies with 95 % confidence, 0 to 1 (source: Wilson, JASA 22, 1927; without continuity correction).

    `None` without trials. It holds for independent trials: instances of a task are, attempts within one are not.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} trials is no share")
    if not trials:
        return None
    share, squared = successes / trials, Z95 * Z95
    middle = share + squared / (2 * trials)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials * trials))
    whole = 1 + squared / trials
    # At the ends the bound is exact, which rounding would miss.
    low = 0.0 if successes == 0 else (middle - half) / whole
    high = 1.0 if successes == trials else (middle + half) / whole
    return low, high


def difference_interval(first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float] | None:
    """Where the first share minus the second lies with 95 % confidence, each given as (successes, trials), -1 to 1.

    Source: Newcombe, Statistics in Medicine 17, 1998, 873-890, method 10: the two Wilson intervals, combined. `None`
    where either has no trials. An interval that holds 0 says that these trials do not resolve which share is greater.
    """
    one, other = wilson_interval(*first), wilson_interval(*second)
    if one is None or other is None:
        return None
    share, rival = first[0] / first[1], second[0] / second[1]
    return (
        share - rival - math.hypot(share - one[0], other[1] - rival),
        share - rival + math.hypot(one[1] - share, rival - other[0]),
    )


class TimedTwice(NamedTuple):
    """The mean speedup of one source as it was found and as it was confirmed, over the same cases."""

    found: float | None
    """`None` where none was found that could stand beside it: none of the whole task, or of none of its cases."""
    confirmed: float
    cases: int | None = None
    """That both are over, where one of them has a ratio of other cases too; else each is over all of its own."""


def timed_twice(evaluation: Evaluation, exam: Evaluation) -> TimedTwice | None:
    """An evaluation's speedup beside that of the exam which timed the same source again, over the cases that have a ratio in both.

    `None` where the exam has no overall speedup; `found` is, where no case has a ratio in both.
    """
    if exam.speedup is None:
        return None
    if evaluation.speedup is None:
        return TimedTwice(None, exam.speedup)
    found, again = (
        {each.case: each.speedup for each in one.latency if each.speedup is not None}
        for one in (evaluation, exam)
    )
    if found.keys() == again.keys():
        return TimedTwice(evaluation.speedup, exam.speedup)
    both = found.keys() & again.keys()
    if not both:
        return TimedTwice(None, exam.speedup)
    before, now = (math.fsum(one[case] for case in both) / len(both) for one in (found, again))
    return TimedTwice(before, now, len(both))


def _counted(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    return [each for each in evaluations if each.verdict.counted]


def _speedups(evaluations: Iterable[Evaluation]) -> list[float]:
    return [
        each.speedup for each in evaluations if each.verdict is Verdict.CORRECT and each.speedup is not None
    ]


def _share(facts: Sequence[bool]) -> float | None:
    return sum(facts) / len(facts) if facts else None


def _geomean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
