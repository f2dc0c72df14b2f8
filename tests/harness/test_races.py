"""Protects the race check, on addresses without a kernel: races between lanes and warps are found, safe orders pass."""

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
    """A simulated launch on one tensor of 4,096 floats."""

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
        pytest.param(LANES, LANES, False, id="same lane"),
        pytest.param(LANES, SWAPPED, True, id="different warp"),
        pytest.param(LANES, LANES ^ 1, False, id="neighbour lane"),
        pytest.param(LANES, LANES + 2048, False, id="different addresses"),
        pytest.param(ACROSS, DOWN, False, id="transposed"),
        pytest.param(ACROSS, ACROSS[::-1], True, id="two dimensions, different warp"),
        pytest.param(np.array(700), LANES, True, id="scalar load, block store"),
        pytest.param(np.array(700), LANES[:64] + 690, False, id="scalar load, one-warp store"),
        pytest.param(LANES, np.array(700), False, id="block load, scalar store"),
        pytest.param(np.array(7), np.array(7), False, id="scalar load and store"),
    ],
)
def test_store_to_loaded_address_races_only_between_warps(
    loaded: np.ndarray, stored: np.ndarray, *, raced: bool
) -> None:
    kernel = Kernel()
    kernel.load(loaded)
    kernel.store(stored)
    assert kernel.raced == raced


@pytest.mark.parametrize(
    "between", [lambda races: races.meet(), lambda races: races.barrier()], ids=["reduction", "barrier"]
)
def test_store_after_reduction_or_barrier_does_not_race(between: Callable[[Races], None]) -> None:
    kernel = Kernel()
    kernel.load(LANES)
    between(kernel.programs)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_lanes_of_one_warp_do_not_race() -> None:
    kernel = Kernel(one_warp=True)
    kernel.load(LANES)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_store_of_unchanged_values_does_not_race() -> None:
    kernel = Kernel()
    kernel.load(LANES)
    kernel.programs.changing = lambda _: np.zeros(LANES.size, dtype=bool)
    kernel.store(SWAPPED)
    assert not kernel.raced


def test_wide_store_races_with_narrow_loads() -> None:
    kernel = Kernel()
    kernel.store(LANES, item_bytes=8)
    kernel.load(LANES * 2 + 1)
    assert not kernel.raced
    kernel.load(SWAPPED * 2 + 1)
    assert kernel.raced


@pytest.mark.parametrize("barrier", [True, False])
def test_releasing_atomic_covers_stores_only_after_a_barrier(*, barrier: bool) -> None:
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
def test_scalar_store_and_scalar_load_race_between_warps(*, one_warp: bool, raced: bool) -> None:
    kernel = Kernel(one_warp=one_warp)
    kernel.store(np.array(7))
    kernel.load(np.array(8))
    assert not kernel.raced
    kernel.load(np.array(7))
    assert kernel.raced == raced
