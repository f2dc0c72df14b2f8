"""Accuracies and pass@k over rows. A share is 0 to 1; `None` means that no row counts.

Shares leave out kernels that a person gave, and verdicts that are not `counted`: unsupported, cancelled, failure of Wavedeck.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .attempt_row import AttemptRow
from .selection import by_instance


def call_accuracy(rows: Iterable[AttemptRow]) -> float | None:
    """Returns the share that imports and runs on the first case (source: TritonBench, GEAK; "call accuracy").

    KernelBench-X calls it compile rate.
    """
    return _share([row.call for row in _counted(rows)])


def execution_accuracy(rows: Iterable[AttemptRow]) -> float | None:
    """Returns the share that is correct (source: TritonBench, GEAK; "execution accuracy").

    Unlike there, a candidate that passes by a trick is not correct.
    """
    return _share([row.correct for row in _counted(rows)])


def correct_per_compile(rows: Iterable[AttemptRow]) -> float | None:
    """Returns the correct share of the candidates that import and run (source: KernelBench-X, "Correct/Compile")."""
    return _share([row.correct for row in _counted(rows) if row.call])


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


def samples_by_task(rows: Iterable[AttemptRow]) -> dict[str, tuple[int, int]]:
    """Returns (samples, correct samples) by task. A sample is one instance; it is correct if one of its attempts is.

    Instances of several sessions are samples of the same task: select the rows of one method first.
    Instances that a person added are left out, because they are not independent. So is an instance without a counted verdict.
    """
    counts: dict[str, tuple[int, int]] = {}
    for (_, task, _), instance in by_instance(independent_rows(rows)).items():
        samples, correct = counts.get(task, (0, 0))
        counts[task] = samples + 1, correct + any(row.correct for row in instance)
    return counts


def pass_at_each_k(rows: Iterable[AttemptRow]) -> list[float]:
    """Returns pass@1, pass@2, ... up to the number of samples that every task has; empty without rows."""
    tasks = list(samples_by_task(rows).values())
    most = min((samples for samples, _ in tasks), default=0)
    shares = (mean_pass_at_k(tasks, k) for k in range(1, most + 1))
    return [share for share in shares if share is not None]


def independent_rows(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    """Returns the counted rows that are samples of the method: no person added the instance or gave the kernel."""
    return [row for row in rows if row.independent and row.counted]


def _counted(rows: Iterable[AttemptRow]) -> list[AttemptRow]:
    return [row for row in rows if row.counted and not row.given]


def _share(facts: Sequence[bool]) -> float | None:
    return sum(facts) / len(facts) if facts else None
