"""Runs three programs of each launch at `gpu` sizes without touching memory: loads return made-up values, stores do nothing.

So only addresses and masks are computed. Each program runs again with other values: accesses that then go elsewhere depend on
values, and say nothing about the kernel. For a process that does only this.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.wire.results.evaluation import line_in
from harness.worker.interpreter import interpreted_launches
from harness.worker.interpreter.places import Addresses, Allocation, PointerOrigin, candidate_line
from harness.worker.interpreter.tapes.programs import Programs
from harness.worker.interpreter.traffic import Mask, Observation, cannot, current
from harness.worker.kit.arena import AddressSpan

STEP, LOADS = 7, 16
"""Made-up values grow by STEP from load to load and restart after LOADS loads, so they fit into 8 bits."""

_UNUSED = {
    "create_store": (1,),
    "create_masked_store": (1,),
    "create_dot": (0, 1, 2),
    "create_atomic_rmw": (2,),
    "create_atomic_cas": (1, 2),
}
"""Arguments of which the functions below read only the shape, so their values need no computing."""

Intervals = NDArray[np.int64]
"""Half-open intervals of addresses: i64[2, count], starts and ends."""


class FullSizeObservation(Observation):
    """The observation of one call of an entry point at `gpu` sizes."""

    def __init__(self, seed: int) -> None:
        super().__init__(samples=True)
        self.touched_bytes = 0
        """The most distinct bytes that the launches can touch; each launch counts its bytes again."""
        self.is_bound = True
        """Whether no launch touches more than `touched_bytes`."""
        self._draw = random.Random(seed)
        self._other_values = self._falling = False
        self._loads = 0
        self._trail: list[tuple[str, int, int, int]] = []
        """Kind, line, lanes and a hash of the addresses of each access of the running program."""
        self._parts: dict[int, list[Intervals]] = {}
        """The bytes that the running program touches, by allocation."""
        self._moved: set[int] = set()
        """Lines with addresses that depend on loaded values."""

    def touch(
        self,
        kind: str,
        addresses: Addresses,
        mask: Mask | None,
        item_bytes: int,
        origin: PointerOrigin | None,
    ) -> Mask | None:
        """Note an access, and the lanes that miss their tensor."""
        active = np.ones(1, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
        lanes = addresses[np.broadcast_to(active, addresses.shape)]
        self._trail.append((kind, candidate_line()[1], lanes.size, hash(lanes.tobytes())))
        return None if self._other_values else super().touch(kind, addresses, mask, item_bytes, origin)

    def make_up(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Zeros; with other values, small values that differ between lanes and between loads, the first not 0."""
        if not self._other_values:
            return np.zeros(shape, dtype=dtype)
        load = self._loads % LOADS
        self._loads += 1
        level = STEP * (LOADS - 1 - load if self._falling else load)
        count = int(np.prod(shape))
        least = 0 if np.dtype(dtype).kind in "ub" else -1
        return (np.arange(2, count + 2) % 5 + least + level).reshape(shape).astype(dtype)

    def run(self, programs: Programs, grid: tuple[int, int, int]) -> None:
        """Run the first, one drawn and the last program of a launch, and note what they touch."""
        if self.unsupported is not None:
            raise cannot(self.unsupported)
        count = math.prod(grid)
        drawn = self._draw.randrange(1, count - 1) if count > 2 else 0
        numbers = sorted({0, drawn, count - 1})
        touched = [self._run_twice(number, programs, grid) for number in numbers]
        sizes = [sum(_size(intervals) for intervals in parts.values()) for parts in touched]
        if len(sizes) > 2 and sizes[1] > max(sizes[0], sizes[-1]):
            self.is_bound = False
        for home in set().union(*touched):
            own = [parts[home] for parts in touched if home in parts]
            most = count * max(map(_size, own)) if len(numbers) < count else _size(_union(own))
            self.touched_bytes += min(most, self._bytes_of(home))

    def _bytes_of(self, home: int) -> int:
        span = self.allocations[home].span
        return span.end - span.start

    def _run_twice(self, number: int, programs: Programs, grid: tuple[int, int, int]) -> dict[int, Intervals]:
        """The bytes that one program touches, by allocation. Raises if values decide which accesses it makes."""
        self._parts = {}
        before = self._run_once(number, programs, grid)
        touched = {home: _union(parts) for home, parts in self._parts.items()}
        self._other_values = True
        try:
            after = self._run_once(number, programs, grid)
        finally:
            self._other_values, self._falling = False, not self._falling
        if [access[:3] for access in before] != [access[:3] for access in after]:
            raise cannot("which bytes it asks for depends on values that it loads")
        moved = {old[1] for old, new in zip(before, after, strict=True) if old != new}
        if moved:
            self.is_bound = False
            self._moved |= moved
        return touched

    def _run_once(
        self, number: int, programs: Programs, grid: tuple[int, int, int]
    ) -> list[tuple[str, int, int, int]]:
        """Run the program with this number, x fastest; returns its accesses."""
        self._trail, self._loads = [], 0
        rest, x = divmod(number, grid[0])
        z, y = divmod(rest, grid[1])
        programs.run((x, y, z))
        return self._trail

    def certain(self, misses: Iterable[str]) -> tuple[str, ...]:
        """The accesses outside their tensor, without those at addresses that depend on values."""
        return tuple(miss for miss in misses if line_in(miss) not in self._moved)

    def _inside(
        self, kind: str, home: Allocation, live: Addresses, item_bytes: int, origin: PointerOrigin | None
    ) -> None:
        """Note the bytes of an access in one allocation."""
        lanes = live.view(np.int64)
        breaks = np.flatnonzero(np.diff(lanes) != item_bytes)
        starts = lanes[np.concatenate([[0], breaks + 1])]
        ends = lanes[np.concatenate([breaks, [lanes.size - 1]])] + item_bytes
        self._parts.setdefault(home.holder.data_ptr(), []).append(np.stack([starts, ends]))

    def _add(self, address: int, span: AddressSpan, holder: torch.UntypedStorage) -> None:
        """Add an allocation without its byte maps, which would be as large as the tensor."""
        empty = np.empty(0, dtype=np.uint8)
        self.allocations[address] = Allocation(span, holder, empty, empty)


def _union(parts: Iterable[Intervals]) -> Intervals:
    """All bytes of the parts, as sorted, disjoint intervals."""
    starts, ends = np.concatenate(list(parts), axis=1)
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    return np.stack([starts[first], reach[np.concatenate([first[1:], [True]])]])


def _size(intervals: Intervals) -> int:
    """Number of bytes."""
    return int((intervals[1] - intervals[0]).sum())


def install() -> None:
    """Run three programs of every launch of this process. Call it once, after `interpreter.prepare`."""
    interpreted_launches.replace_programs(_run_three)


def _run_three(kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    """Run the first, the last and a drawn program of a launch. Raises `cannot` for a launch outside the entry point."""
    observation = current()
    if not isinstance(observation, FullSizeObservation):
        raise cannot("a kernel was launched outside the entry point")
    if math.prod(grid) > 0:
        observation.run(Programs(kernel.rewrite(), arguments, several=True, unused=_UNUSED), grid)
