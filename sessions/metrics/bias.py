"""Selection bias and repair bias: by how much speeds fall that were chosen because they were high, or after a repair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import geometric_mean

import msgspec

from sessions.state.state import Confirmation

from .accuracy import independent_rows
from .attempt_row import AttemptRow
from .selection import best_row, by_instance
from .speedup import SpeedupDefinition, are_mixed, speedup_geomean, speedup_mean, speedup_sign


class SelectionBias(msgspec.Struct, frozen=True, kw_only=True):
    """The speeds of winners as they were found, against the same kernels timed again in new processes and on new values."""

    timed_again: int
    """Winners with both speeds."""
    not_confirmed: int
    """Winners that failed the exam."""
    found: float | None
    """Geometric mean of the speeds that chose the winners."""
    confirmed: float | None
    """Geometric mean of the exam's speeds of the same winners."""
    sign: str
    """Sign of both: `>=`, `<=`, `~`, or empty without bounds."""
    excess: float | None
    """`found / confirmed - 1`: 0.02 says that selection made the winners look 2 % faster than they are."""


def selection_bias(rows: Iterable[AttemptRow]) -> SelectionBias:
    """Returns the bias over examined rows; only an instance's best attempts are examined.

    Source: the winner's curse, Capen, Clapp and Campbell, JPT 23, 1971. Means are `None` with several provenances.
    """
    examined = [row for row in rows if row.correct]
    pairs = [row for row in examined if row.found is not None and row.confirmed is not None]
    found = confirmed = None
    if pairs and not are_mixed(pairs):
        found = geometric_mean(row.found for row in pairs if row.found is not None)
        confirmed = geometric_mean(row.confirmed for row in pairs if row.confirmed is not None)
    return SelectionBias(
        timed_again=len(pairs),
        not_confirmed=sum(row.confirmation is Confirmation.NOT_CONFIRMED for row in examined),
        found=found,
        confirmed=confirmed,
        sign=speedup_sign(pairs),
        excess=found / confirmed - 1 if found is not None and confirmed is not None else None,
    )


class SpeedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Speeds of a group of kernels."""

    kernels: int
    timed: int
    mean: float | None
    """Arithmetic mean of GEAK's speedups."""
    geomean: float | None
    """Geometric mean of the headlines."""
    sign: str
    """Sign of both means: `>=`, `<=`, `~`, or empty without bounds."""


class RepairBias(msgspec.Struct, frozen=True, kw_only=True):
    """The best kernels of the solved instances, by how the instance began."""

    started_correct: SpeedGroup
    """The first counted attempt was correct."""
    rescued: SpeedGroup
    """The first counted attempt failed, a later one was correct."""


def repair_bias(rows: Iterable[AttemptRow]) -> RepairBias:
    """Returns the speeds of the instances' best kernels: started correct against rescued."""
    started, rescued = list[AttemptRow](), list[AttemptRow]()
    for instance in by_instance(independent_rows(rows)).values():
        best = best_row([row for row in instance if row.correct])
        if best is not None:
            (started if instance[0].correct else rescued).append(best)
    return RepairBias(started_correct=_group(started), rescued=_group(rescued))


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """The attempts of one iteration of all instances."""

    iteration: int
    attempts: int
    called: int
    """Attempts that import and run on the first case (KernelBench-X: compile)."""
    correct: SpeedGroup
    persistent: SpeedGroup
    """Correct attempts whose instance had a correct attempt just before."""
    rescued: SpeedGroup
    """Correct attempts whose instance had a failed attempt just before."""


def rounds(rows: Iterable[AttemptRow]) -> list[Round]:
    """Returns the change of correctness and speed over iterations (source: KernelBench-X, rounds of GEAK).

    A round has the candidates of its iteration, not the best so far. Uncounted attempts are left out.
    """
    attempts = defaultdict[int, list[AttemptRow]](list)
    persistent = defaultdict[int, list[AttemptRow]](list)
    rescued = defaultdict[int, list[AttemptRow]](list)
    for instance in by_instance(independent_rows(rows)).values():
        for row in instance:
            attempts[row.number].append(row)
        for earlier, row in pairwise(instance):
            if row.correct:
                (persistent if earlier.correct else rescued)[row.number].append(row)
    return [
        Round(
            iteration=iteration,
            attempts=len(attempts[iteration]),
            called=sum(row.call for row in attempts[iteration]),
            correct=_group([row for row in attempts[iteration] if row.correct]),
            persistent=_group(persistent[iteration]),
            rescued=_group(rescued[iteration]),
        )
        for iteration in sorted(attempts)
    ]


def _group(rows: Sequence[AttemptRow]) -> SpeedGroup:
    return SpeedGroup(
        kernels=len(rows),
        timed=sum(row.headline is not None for row in rows),
        mean=speedup_mean(rows, SpeedupDefinition.GEAK),
        geomean=speedup_geomean(rows),
        sign=speedup_sign(rows),
    )
