"""What lanes and programs do to each other, by addresses alone: what is told and what is let pass."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from harness.worker.interpreter.races import Order, Races
from harness.worker.interpreter.traffic import Observation

pytestmark = pytest.mark.judge

LANES = np.arange(1024)
SWAPPED = LANES ^ 512
SIDE = 32
ROWS, COLUMNS = np.arange(SIDE)[:, None], np.arange(SIDE)[None, :]
ACROSS, DOWN = ROWS * SIDE + COLUMNS, COLUMNS * SIDE + ROWS


class Kernel:
    """A launch on one tensor of 4,096 floats."""

    def __init__(self, *, one_warp: bool = False) -> None:
        self.tensor = torch.zeros(4096)
        self.seen = Observation()
        self.seen.admit({"x": self.tensor})
        self.programs = self.seen.race_finder = Races()
        self.programs.begin_launch(lockstep=one_warp)
        self.program()

    def program(self) -> None:
        self.seen.begin_program((0, 0, 0))

    def access(
        self, kind: str, indices: np.ndarray, *, mask: np.ndarray | None = None, item_bytes: int = 4
    ) -> None:
        places = np.asarray(indices).astype(np.int64) * item_bytes + self.tensor.data_ptr()
        self.seen.touch(kind, places.astype(np.uint64), mask, item_bytes, self.seen.origin(self.tensor))

    def load(self, indices: np.ndarray, **named: object) -> None:
        self.access("load", indices, **named)

    def store(self, indices: np.ndarray, **named: object) -> None:
        self.access("store", indices, **named)

    @property
    def raced(self) -> bool:
        return bool(self.seen.races)


@pytest.mark.parametrize(
    ("loaded", "stored", "raced"),
    [
        pytest.param(LANES, LANES, False, id="by the same lane"),
        pytest.param(LANES, SWAPPED, True, id="by another warp"),
        pytest.param(LANES, LANES ^ 1, False, id="by a neighbour"),
        pytest.param(LANES, LANES + 2048, False, id="elsewhere"),
        pytest.param(ACROSS, DOWN, False, id="the other way through memory"),
        pytest.param(ACROSS, ACROSS[::-1], True, id="in two dimensions by another warp"),
        pytest.param(np.array(700), LANES, True, id="one value by a block"),
        pytest.param(np.array(700), LANES[:64] + 690, False, id="one value by one warp"),
        pytest.param(LANES, np.array(700), False, id="a block by one value"),
        pytest.param(np.array(7), np.array(7), False, id="one value by one"),
    ],
)
def test_a_store_over_what_was_loaded(loaded: np.ndarray, stored: np.ndarray, *, raced: bool) -> None:
    kernel = Kernel()
    kernel.load(loaded)
    kernel.store(stored)
    assert kernel.raced == raced


@pytest.mark.parametrize(
    "between", [lambda races: races.meet(), lambda races: races.barrier()], ids=["a sum", "a barrier"]
)
def test_lanes_that_met_have_loaded(between: Callable[[Races], None]) -> None:
    kernel = Kernel()
    kernel.load(LANES)
    between(kernel.programs)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_one_warp_goes_together() -> None:
    kernel = Kernel(one_warp=True)
    kernel.load(LANES)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_a_store_that_changes_nothing_overtakes_nobody() -> None:
    kernel = Kernel()
    kernel.load(LANES)
    kernel.programs.changing = lambda _: np.zeros(LANES.size, dtype=bool)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_bytes_of_a_wide_store_are_known_to_narrow_loads() -> None:
    kernel = Kernel()
    kernel.store(LANES, item_bytes=8)
    kernel.load(LANES * 2 + 1)
    assert not kernel.raced
    kernel.load(SWAPPED * 2 + 1)
    assert kernel.raced


@pytest.mark.parametrize("barrier", [True, False])
def test_an_atomic_hands_over_what_lanes_added_before_a_barrier(*, barrier: bool) -> None:
    kernel = Kernel()
    for _ in range(2):
        kernel.program()
        kernel.programs.order = Order(acquires=False, releases=False)
        kernel.access("atomic", LANES)
        if barrier:
            kernel.programs.barrier()
        kernel.programs.order = Order()
        kernel.access("atomic", np.array(4000))
    kernel.load(LANES)
    assert kernel.raced == (not barrier)


@pytest.mark.parametrize(("one_warp", "raced"), [(False, True), (True, False)])
def test_one_value_is_stored_by_one_lane_and_loaded_by_every_warp(*, one_warp: bool, raced: bool) -> None:
    kernel = Kernel(one_warp=one_warp)
    kernel.store(np.array(7))
    kernel.load(np.array(8))
    assert not kernel.raced
    kernel.load(np.array(7))
    assert kernel.raced == raced
