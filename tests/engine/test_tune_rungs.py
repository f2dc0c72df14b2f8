"""Successive halving: who survives rungs of few samples, whatever the speeds, and what the rungs cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from engine.methods.tune import finalists
from engine.tuning import FIELD, mark_kept, rungs
from harness import ROUGH, Effort
from sessions.events import RungEntry, SweepRung, SweptVariant

GAP = 0.05
"""Relative, between neighbouring speeds; noise is below half of it."""


class Rungs:
    """Estimates true speeds with noise."""

    def __init__(self, speeds: Sequence[float], wrong: frozenset[int], noise: Any) -> None:
        self.speeds, self.wrong, self.noise = speeds, wrong, noise
        self.asked: list[tuple[int, Effort]] = []

    async def rung(
        self, attempt: str, variants: Sequence[SweptVariant], *, number: int, effort: Effort, most: int
    ) -> SweepRung:
        self.asked.append((len(variants), effort))
        entries = [self.entry(variant) for variant in variants]
        return SweepRung(attempt=attempt, rung=number, pairs=effort.pairs, entries=mark_kept(entries, most))

    def entry(self, variant: SweptVariant) -> RungEntry:
        number = int(variant.changes[0])
        if number in self.wrong:
            return RungEntry(variant.changes, "wrong", why="output 0 is wrong")
        off = self.noise.draw(st.floats(min_value=-0.45, max_value=0.45)) * GAP
        return RungEntry(variant.changes, "correct", self.speeds[number] * (1 + off), 10)


@given(st.data(), st.integers(min_value=1, max_value=48), st.integers(min_value=1, max_value=12))
def test_the_truly_best_right_variant_survives_noise_below_the_gaps(
    data: st.DataObject, count: int, most: int
) -> None:
    order = data.draw(st.permutations(range(count)))
    speeds = [(1 + GAP) ** place for place in order]
    wrong = data.draw(st.frozensets(st.integers(min_value=0, max_value=count - 1), max_size=count - 1))
    world = Rungs(speeds, wrong, data)
    variants = [SweptVariant((str(number),), f"source {number}", better=False) for number in range(count)]
    told: list[SweepRung] = []
    left = asyncio.run(finalists(cast(Any, world), "a#1/1", variants, most, told))
    names = [int(variant.changes[0]) for variant in left]
    assert len(names) <= most
    assert len(set(names)) == len(names)
    if told:
        assert not wrong & set(names), "what was judged wrong leaves"
    best = max((number for number in range(count) if number not in wrong), key=lambda number: speeds[number])
    assert best in names
    assert len(world.asked) <= len(ROUGH)
    fields = [asked for asked, _ in world.asked]
    assert sum(fields) <= 2 * count, "two rungs, and the second of fewer"
    assert fields == sorted(fields, reverse=True)
    efforts = [effort for _, effort in world.asked]
    assert efforts == list(ROUGH[len(ROUGH) - len(efforts) :]), "the finest last"


def test_each_rung_keeps_a_half_of_a_whole_field_and_takes_several_times_the_samples() -> None:
    assert [keeps for _, keeps in rungs(FIELD * 5, 5)] == [10, 5]
    assert rungs(5, 5) == []
    first, second = ROUGH
    assert second.pairs * second.most_rounds >= 4 * first.pairs * first.most_rounds
    assert second.budget_s <= 15


@given(st.lists(st.booleans(), min_size=1), st.integers(min_value=1, max_value=9))
def test_what_has_no_estimate_goes_on_behind_what_has_one_in_its_order(known: list[bool], most: int) -> None:
    entries = [
        RungEntry((str(number),), "correct", 1.0 + number if one else None)
        for number, one in enumerate(known)
    ]
    told = mark_kept(entries, most)
    estimates = [entry.estimate for entry in told]
    with_one = [one for one in estimates if one is not None]
    assert with_one == sorted(with_one, reverse=True)
    assert estimates[len(with_one) :] == [None] * (len(known) - len(with_one))
    without = [int(entry.changes[0]) for entry in told if entry.estimate is None]
    assert without == sorted(without)
    assert [entry.kept for entry in told] == [number < most for number in range(len(known))]
