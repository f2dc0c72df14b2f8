"""Successive halving: the survivors of rungs with few samples, and the cost of the rungs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from engine.methods.tune import finalists
from engine.tuning.rungs import FIELD, PlannedRung, mark_kept, rungs
from harness import ROUGH, Effort
from sessions.events import RungEntry, SweepRung, SweptVariant

GAP = 0.05
"""Relative gap between neighbouring speeds; the noise is below half of this gap."""


class NoisyRungs:
    """Returns the true speeds with noise."""

    def __init__(self, speeds: Sequence[float], wrong: frozenset[int], noise: Any) -> None:
        self.speeds, self.wrong, self.noise = speeds, wrong, noise
        self.calls: list[tuple[int, Effort]] = []

    async def rung(self, attempt: str, variants: Sequence[SweptVariant], rung: PlannedRung) -> SweepRung:
        self.calls.append((len(variants), rung.effort))
        entries = [self.entry(variant) for variant in variants]
        return SweepRung(
            attempt=attempt, rung=rung.number, pairs=rung.effort.pairs, entries=mark_kept(entries, rung.keeps)
        )

    def entry(self, variant: SweptVariant) -> RungEntry:
        number = int(variant.changes[0])
        if number in self.wrong:
            return RungEntry(variant.changes, "wrong", why="output 0 is wrong")
        off = self.noise.draw(st.floats(min_value=-0.45, max_value=0.45)) * GAP
        return RungEntry(variant.changes, "correct", self.speeds[number] * (1 + off), 10)


@given(st.data(), st.integers(min_value=1, max_value=48), st.integers(min_value=1, max_value=12))
def test_best_correct_variant_survives_noise_below_the_gaps(
    data: st.DataObject, count: int, most: int
) -> None:
    order = data.draw(st.permutations(range(count)))
    speeds = [(1 + GAP) ** index for index in order]
    wrong = data.draw(st.frozensets(st.integers(min_value=0, max_value=count - 1), max_size=count - 1))
    world = NoisyRungs(speeds, wrong, data)
    variants = [SweptVariant((str(number),), f"source {number}", better=False) for number in range(count)]
    recorded: list[SweepRung] = []
    survivors = asyncio.run(finalists(cast(Any, world), "a#1/1", variants, most, recorded))
    names = [int(variant.changes[0]) for variant in survivors]
    assert len(names) <= most
    assert len(set(names)) == len(names)
    if recorded:
        assert not wrong & set(names), "wrong variants do not survive"
    best = max((number for number in range(count) if number not in wrong), key=lambda number: speeds[number])
    assert best in names
    assert len(world.calls) <= len(ROUGH)
    fields = [size for size, _ in world.calls]
    assert sum(fields) <= 2 * count, "two rungs; the second has fewer variants"
    assert fields == sorted(fields, reverse=True)
    efforts = [effort for _, effort in world.calls]
    assert efforts == list(ROUGH[len(ROUGH) - len(efforts) :]), "the finest effort is last"


def test_each_rung_keeps_half_and_takes_several_times_the_samples() -> None:
    assert [rung.keeps for rung in rungs(FIELD * 5, 5)] == [10, 5]
    assert rungs(5, 5) == []
    first, second = ROUGH
    assert second.pairs * second.most_rounds >= 4 * first.pairs * first.most_rounds
    assert second.budget_s <= 15


def test_by_case_a_rung_keeps_what_is_best_in_some_case() -> None:
    entries = [
        RungEntry(("even",), "correct", 1.2, by_case={"small": 1.2, "large": 1.2, "slower": 0.9}),
        RungEntry(("small",), "correct", 0.9, by_case={"small": 1.6, "large": 0.5, "slower": 0.8}),
        RungEntry(("large",), "correct", 1.1, by_case={"small": 0.9, "large": 1.3, "slower": 0.7}),
        RungEntry(("wrong",), "wrong", 2.0, by_case={"small": 2.0}),
    ]
    assert {entry.changes[0] for entry in mark_kept(entries, 2) if entry.kept} == {"small", "large"}
    assert [entry.changes[0] for entry in mark_kept(entries, 3) if entry.kept] == ["large", "small", "even"]


@given(st.lists(st.booleans(), min_size=1), st.integers(min_value=1, max_value=9))
def test_entries_without_estimate_follow_in_their_order(has_estimate: list[bool], most: int) -> None:
    entries = [
        RungEntry((str(number),), "correct", 1.0 + number if estimated else None)
        for number, estimated in enumerate(has_estimate)
    ]
    ranked = mark_kept(entries, most)
    estimates = [entry.estimate for entry in ranked]
    numbers = [estimate for estimate in estimates if estimate is not None]
    assert numbers == sorted(numbers, reverse=True)
    assert estimates[len(numbers) :] == [None] * (len(has_estimate) - len(numbers))
    without = [int(entry.changes[0]) for entry in ranked if entry.estimate is None]
    assert without == sorted(without)
    assert [entry.kept for entry in ranked] == [number < most for number in range(len(has_estimate))]
