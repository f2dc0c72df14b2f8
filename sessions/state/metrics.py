"""The field's metrics, each defined once with its source.

Shares and means leave out evaluations with a verdict that is not `counted` (unsupported, cancelled, failure of
Wavedeck). An unknown metric is `None`: the mean of no values is not 1.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist, fmean, geometric_mean

from harness import Evaluation, Verdict

from .speed import are_comparable, joint_sign, speed_of

Z95 = NormalDist().inv_cdf(0.975)
"""Standard deviations on each side that contain 95 % of a normal distribution."""


def call_accuracy(evaluations: Iterable[Evaluation]) -> float | None:
    """Returns the share that imports and runs on the first case, 0 to 1 (source: TritonBench, "call accuracy")."""
    return _share([evaluation.call for evaluation in _counted(evaluations)])


def execution_accuracy(evaluations: Iterable[Evaluation]) -> float | None:
    """Returns the share that is correct, 0 to 1 (source: TritonBench, "execution accuracy").

    Unlike there, a candidate that passes by a trick is not correct.
    """
    return _share([evaluation.verdict is Verdict.CORRECT for evaluation in _counted(evaluations)])


def correct_per_compile(evaluations: Iterable[Evaluation]) -> float | None:
    """Returns the correct share of the candidates that compile and run, 0 to 1.

    Source: KernelBench-X, "Correct/Compile".
    """
    return _share(
        [evaluation.verdict is Verdict.CORRECT for evaluation in _counted(evaluations) if evaluation.call]
    )


def speedup_mean(evaluations: Iterable[Evaluation]) -> float | None:
    """Returns the arithmetic mean of the measured speedups of correct candidates (source: GEAK).

    `None` if several provenances gave them.
    """
    timed = _timed(evaluations)
    speedups = [evaluation.speedup for evaluation in timed if evaluation.speedup is not None]
    return fmean(speedups) if speedups and not are_mixed(timed) else None


def speedup_geomean(evaluations: Iterable[Evaluation]) -> float | None:
    """Returns the geometric mean over correct candidates of their speeds (`Speed.value`).

    `None` if several provenances gave them. Source: Fleming and Wallace, CACM 29(3), 1986.
    """
    timed = _timed(evaluations)
    speeds = [speed.value for evaluation in timed if (speed := speed_of(evaluation)) is not None]
    return geometric_mean(speeds) if speeds and not are_mixed(timed) else None


def are_mixed(evaluations: Iterable[Evaluation]) -> bool:
    """True if the speeds of these evaluations come from several provenances, so that no mean has all of them."""
    timed = _timed(evaluations)
    return not all(are_comparable(timed[0], evaluation) for evaluation in timed[1:])


def speedup_sign(evaluations: Iterable[Evaluation]) -> str:
    """Returns the sign of a mean over the speeds of correct candidates: `>=`, `<=`, `~`, or empty without bounds."""
    return joint_sign(speed.sign for evaluation in evaluations if (speed := speed_of(evaluation)) is not None)


def fast_p(evaluations: Iterable[Evaluation], p: float) -> float | None:
    """Returns the share that is correct and more than `p` times as fast as the baseline.

    Source: KernelBench; strict `>`. `None` if `p` > 0 and a correct candidate was timed in no case, because its
    speed is unknown, or if several provenances gave the speeds. `fast_p(0)` is the execution accuracy.
    """
    counted = _counted(evaluations)
    if p <= 0:
        return execution_accuracy(counted)
    speeds = [speed_of(evaluation) for evaluation in counted if evaluation.verdict is Verdict.CORRECT]
    known = [speed.value for speed in speeds if speed is not None]
    if not counted or len(known) < len(speeds) or are_mixed(counted):
        return None
    return sum(value > p for value in known) / len(counted)


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Returns the unbiased chance that at least one of `k` drawn samples is correct (source: Chen et al., 2021).

    1 - C(n - c, k) / C(n, k), in exact integers until the last division. Raises `ValueError` unless 1 <= k <= samples
    and 0 <= correct <= samples.
    """
    if not (1 <= k <= samples and 0 <= correct <= samples):
        raise ValueError(f"pass@{k} of {samples} samples with {correct} correct does not exist")
    draws = math.comb(samples, k)
    return (draws - math.comb(samples - correct, k)) / draws


def mean_pass_at_k(tasks: Sequence[tuple[int, int]], k: int) -> float | None:
    """Returns the mean of `pass_at_k` over tasks given as (samples, correct).

    `None` if a task has fewer than `k` samples.
    """
    if not tasks or any(samples < k for samples, _ in tasks):
        return None
    return math.fsum(pass_at_k(samples, correct, k) for samples, correct in tasks) / len(tasks)


def wilson_interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of a share, 0 to 1; `None` without trials.

    Source: Wilson, JASA 22, 1927; without continuity correction. It assumes independent trials: instances of a task
    are independent, attempts of one instance are not.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} trials is not a share")
    if not trials:
        return None
    share, squared = successes / trials, Z95 * Z95
    middle = share + squared / (2 * trials)
    half = Z95 * math.sqrt(share * (1 - share) / trials + squared / (4 * trials * trials))
    whole = 1 + squared / trials
    # At 0 and 1 the bound is exact; rounding would miss it.
    low = 0.0 if successes == 0 else (middle - half) / whole
    high = 1.0 if successes == trials else (middle + half) / whole
    return low, high


def difference_interval(first: tuple[int, int], second: tuple[int, int]) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of the first share minus the second, -1 to 1.

    Each share is given as (successes, trials). Source: Newcombe, Statistics in Medicine 17, 1998, 873-890, method 10,
    which combines two Wilson intervals. `None` if either has no trials. If the interval contains 0, the trials do not
    show which share is greater.
    """
    first_interval, second_interval = wilson_interval(*first), wilson_interval(*second)
    if first_interval is None or second_interval is None:
        return None
    share, rival = first[0] / first[1], second[0] / second[1]
    return (
        share - rival - math.hypot(share - first_interval[0], second_interval[1] - rival),
        share - rival + math.hypot(first_interval[1] - share, rival - second_interval[0]),
    )


def _counted(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    return [evaluation for evaluation in evaluations if evaluation.verdict.counted]


def _timed(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """The correct candidates with a measured speed."""
    return [evaluation for evaluation in evaluations if speed_of(evaluation) is not None]


def _share(facts: Sequence[bool]) -> float | None:
    return sum(facts) / len(facts) if facts else None
