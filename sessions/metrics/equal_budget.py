"""Pairs two sides task by task at equal budget: what each side reached with the budget that both spent.

A chain is the rows of one instance. A chain is paired with the chain of the same task, method, model, seed and place on the other
side. Sides with one method each may differ in it, and so in their models. Seeds may differ if the sides have no common one.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import NamedTuple

import msgspec

from sessions.state.state import Confirmation

from .attempt_row import AttemptRow
from .selection import OTHER_PROVENANCE, by_instance, counted_rows


class EqualCost(StrEnum):
    """The cost that is equal on both sides."""

    ATTEMPTS = "attempts"
    TOKENS = "tokens"
    """Tokens in and out."""
    USD = "usd"
    DEVICE_S = "device-s"
    """Seconds in which the judge held devices."""

    @property
    def unit(self) -> str:
        """The unit in words."""
        return {EqualCost.USD: "US dollars", EqualCost.DEVICE_S: "device seconds"}.get(self, self.value)


class Best(NamedTuple):
    """The fastest attempt of one side on a task."""

    attempt: str
    speedup: float
    provenance: tuple[str, ...]
    against: str


class TaskPair(msgspec.Struct, frozen=True, kw_only=True):
    """One task on both sides, at equal budget. In each pair side A comes first."""

    task: str
    instances: int
    """Pairs of instances."""
    budget: tuple[float, float]
    """Least and greatest budget of a pair of instances."""
    solved: tuple[bool, bool]
    best: tuple[Best | None, Best | None]
    apart: str = ""
    """Why the two speedups are not compared; empty if they are, or if a side has none."""

    @property
    def log_ratio(self) -> float | None:
        """Logarithm of B's speedup over A's; `None` if they are not compared."""
        first, second = self.best
        if first is None or second is None or self.apart:
            return None
        return math.log(second.speedup / first.speedup)


FACTORS: dict[str, Callable[[AttemptRow], Hashable]] = {
    "method": lambda row: (row.method, row.without, row.label),
    "model": lambda row: row.model,
    "seed": lambda row: row.seed,
}
"""Values that are equal in a pair of chains, unless the sides differ in them."""


class Paired(msgspec.Struct, frozen=True):
    """The tasks that both sides tried, and what is left out."""

    pairs: tuple[TaskPair, ...]
    left_out: dict[str, int]
    """Numbers of rows or instances that are not compared, by reason."""


class _Chain(NamedTuple):
    rows: Sequence[AttemptRow]
    spent: Sequence[float]
    """Budget spent up to each row, this row included."""

    @property
    def solved_at(self) -> float | None:
        """Budget at the first correct row."""
        return next((spent for row, spent in zip(self.rows, self.spent, strict=True) if row.correct), None)

    def within(self, budget: float) -> list[AttemptRow]:
        """Returns the rows that the budget pays for."""
        return [row for row, spent in zip(self.rows, self.spent, strict=True) if spent <= budget]


def cost_of(row: AttemptRow, budget: EqualCost) -> float | None:
    """Returns the cost of one attempt; `None` if it is not known."""
    match budget:
        case EqualCost.ATTEMPTS:
            return 1.0
        case EqualCost.TOKENS:
            if row.input_tokens is None or row.output_tokens is None:
                return None
            return float(row.input_tokens + row.output_tokens)
        case EqualCost.USD:
            return row.cost_usd
        case EqualCost.DEVICE_S:
            return row.device_s


def pair_tasks(first: Iterable[AttemptRow], second: Iterable[AttemptRow], budget: EqualCost) -> Paired:
    """
    Returns the tasks of both sides, each side cut at equal budget, in order of the first side.

    Solved: an unsolved chain is known up to its last attempt. A solved chain stays solved at each larger budget, up to the
    largest budget that a chain of both sides reached. So a method that stops when it is done gains and loses nothing.
    Speedups: the fastest attempt within the budget that both chains of a pair spent, by the timing of its verdict. The exam
    times only each instance's last winner, which a cut may leave out.
    """
    left_out: Counter[str] = Counter()
    independent = [_independent_rows(rows, left_out) for rows in (first, second)]
    equal = [value for name, value in FACTORS.items() if _is_equal_in_pairs(name, *independent)]
    sides = [_chains(rows, equal, budget, left_out) for rows in independent]
    common = [key for key in sides[0] if key in sides[1]]
    apart = sides[0].keys() ^ sides[1].keys()
    quoted = {key for key in apart if key._replace(reference_shown=not key.reference_shown) in apart}
    left_out["instance whose prompt quotes the reference on one side alone"] = len(quoted)
    left_out["instance that only one side has"] = len(apart) - len(quoted)
    by_task: dict[tuple[str, bool], list[tuple[_Chain, _Chain]]] = defaultdict(list)
    for key in common:
        by_task[key.task, key.reference_shown].append((sides[0][key], sides[1][key]))
    largest = min(max((side[key].spent[-1] for key in common), default=0.0) for side in sides)
    pairs = [_task_pair(task, chains, largest) for (task, _), chains in by_task.items()]
    return Paired(tuple(pairs), {reason: number for reason, number in left_out.items() if number})


def _is_equal_in_pairs(name: str, first: Sequence[AttemptRow], second: Sequence[AttemptRow]) -> bool:
    """True if the sides have a common value. Two sides with one method each differ in it; of several, no two fit."""
    values = {*map(FACTORS[name], first)}, {*map(FACTORS[name], second)}
    return not values[0].isdisjoint(values[1]) or (name != "seed" and sum(map(len, values)) > 2)


class _ChainKey(NamedTuple):
    task: str
    reference_shown: bool
    """Chains that saw the reference are never compared with chains that did not."""
    factors: tuple[Hashable, ...]
    place: int
    """1, 2, ... among the chains with equal values before it, by seed and number."""


def _independent_rows(rows: Iterable[AttemptRow], left_out: Counter[str]) -> list[AttemptRow]:
    """Returns the rows that are samples of a method; counts the others."""
    selection = counted_rows(rows)
    left_out.update(selection.left_out)
    independent = [row for row in selection.rows if row.independent]
    left_out["instance that a person added"] += len(selection.rows) - len(independent)
    return independent


def _chains(
    rows: Iterable[AttemptRow],
    equal: Sequence[Callable[[AttemptRow], Hashable]],
    budget: EqualCost,
    left_out: Counter[str],
) -> dict[_ChainKey, _Chain]:
    """Returns the chains of one side, of which the factors `equal` are part of the key."""
    chains: dict[_ChainKey, _Chain] = {}
    places = Counter[tuple[Hashable, ...]]()
    by_seed = sorted(by_instance(rows).items(), key=lambda item: (item[1][0].seed, item[0][0], item[0][2]))
    for _, chain in by_seed:
        head = chain[0]
        same = (head.task, head.reference_shown, tuple(factor(head) for factor in equal))
        places[same] += 1
        costs = [cost_of(row, budget) for row in chain]
        known_costs = [cost for cost in costs if cost is not None]
        if len(known_costs) < len(costs):
            left_out[f"instance with an unknown number of {budget.unit}"] += 1
        else:
            chains[_ChainKey(*same, places[same])] = _Chain(chain, list(accumulate(known_costs)))
    return chains


def _task_pair(task: str, chains: Sequence[tuple[_Chain, _Chain]], largest: float) -> TaskPair:
    budgets, solved = [], [False, False]
    within: tuple[list[AttemptRow], list[AttemptRow]] = ([], [])
    for pair in chains:
        ends = [largest if chain.solved_at is not None else chain.spent[-1] for chain in pair]
        spent = min(chain.spent[-1] for chain in pair)
        budgets.append(min(*ends, largest))
        for side, chain in enumerate(pair):
            solved[side] |= chain.solved_at is not None and chain.solved_at <= budgets[-1]
            within[side].extend(chain.within(spent))
    best = (_best(within[0]), _best(within[1]))
    return TaskPair(
        task=task,
        instances=len(chains),
        budget=(min(budgets), max(budgets)),
        solved=(solved[0], solved[1]),
        best=best,
        apart=_apart(*best),
    )


def _best(rows: Iterable[AttemptRow]) -> Best | None:
    """Returns the fastest exactly timed row that neither a person nor the exam refused."""
    timed = [
        Best(row.attempt, row.found, row.provenance, row.against)
        for row in rows
        if row.found is not None and row.speed is not None and not row.speed.sign and not row.rejected
        if row.confirmation is not Confirmation.NOT_CONFIRMED
    ]
    return max(timed, key=lambda best: best.speedup, default=None)


def _apart(first: Best | None, second: Best | None) -> str:
    if first is None or second is None:
        return ""
    if first.provenance != second.provenance:
        return OTHER_PROVENANCE
    return "" if first.against == second.against else "another baseline"
