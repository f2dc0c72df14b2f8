"""
What the lanes of one program do to each other between two points at which all of them meet.

Triton puts barriers where lanes exchange values through shared memory, and none between accesses of global memory: warps go
their own ways from one to the next. The interpreter runs all lanes of an access at once, so that what comes too late on a device
is in time there.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .allocations import Allocation

Places = NDArray[np.int64]
Mask = NDArray[np.bool_]
Changing = Callable[[Mask | None], Mask]
"""Of a store's lanes, flat: whether the active ones among these, all of them where it is `None`, store another value than there is."""

WARP = 64
"""Lanes that go together, at the most of all targets."""
MOST_KEPT = 512
"""Accesses of one allocation without a point at which lanes meet; those before are forgotten."""
OVERTAKES = (
    "stores to {} what other lanes of this program loaded before it, or are about to, as they go their own ways; put a "
    "tl.debug_barrier() between"
)


class Access:
    """One access as far as it matters here."""

    __slots__ = ("_first", "active", "addresses", "high", "home", "item_bytes", "live", "low", "shape")

    def __init__(
        self,
        home: Allocation,
        live: NDArray[np.uint64],
        addresses: NDArray[np.uint64],
        active: Mask | None,
        item_bytes: int,
        span: tuple[int, int] | None = None,
    ) -> None:
        """`live`: addresses of the active lanes, at least one, of all `addresses`; `active` is flat, `None` where all are;
        `span`: the addresses from the first byte to behind the last, where they are known.
        """
        self.home = home
        self.live = live
        self.addresses = addresses
        self.shape: tuple[int, ...] = addresses.shape if addresses.size > 1 else ()
        """Of the whole access; empty where it is of one lane."""
        self.active = active
        self.item_bytes = item_bytes
        self.low, self.high = span if span is not None else (int(live.min()), int(live.max()) + item_bytes)
        self._first: Places | None = None

    @property
    def places(self) -> Places:
        """First byte of each active lane's element, in the allocation."""
        if self._first is None:
            self._first = self.live.astype(np.int64) - self.home.span.start
        return self._first

    @property
    def noted(self) -> Places:
        """Where it is noted, and what it meets is: its `places`, or all bytes of the first lane, then of the next."""
        if self.home.grain_bytes != 1:
            return self.places
        return (self.places[:, None] + np.arange(self.item_bytes)).reshape(-1)

    def all_lanes(self, _: Mask | None) -> Mask:
        """See `Changing`."""
        return np.ones(self.addresses.size, dtype=bool)

    @property
    def lanes(self) -> Places:
        """Numbers of the active lanes."""
        return np.arange(self.live.size) if self.active is None else np.flatnonzero(self.active)

    @property
    def fastest(self) -> int:
        """The axis along which memory is contiguous, or most nearly so: a compiler deals lanes out to threads by it."""
        steps = [
            abs(int(np.moveaxis(self.addresses, axis, -1)[..., :2].flat[1]) - int(self.addresses.flat[0]))
            if size > 1
            else 0
            for axis, size in enumerate(self.shape)
        ]
        moving = [axis for axis, step in enumerate(steps) if step]
        return min(reversed(moving), key=lambda axis: steps[axis], default=len(self.shape) - 1)

    @property
    def warps(self) -> Places:
        """A number for each active lane, another one wherever two may be in different warps."""
        lanes, fastest = self.lanes, self.fastest
        if fastest != len(self.shape) - 1:
            order = np.moveaxis(np.arange(math.prod(self.shape)).reshape(self.shape), fastest, -1).ravel()
            ranks = np.empty_like(order)
            ranks[order] = np.arange(order.size)
            lanes = ranks[lanes]
        return lanes // WARP

    def meets(self, other: Access) -> bool:
        """Whether the two, of one allocation, may touch the same bytes, each of them by another lane."""
        if self.low >= other.high or other.low >= self.high:
            return False
        same = self.shape == other.shape and self.live.size == other.live.size
        return not (same and np.array_equal(self.addresses, other.addresses))


def _several() -> deque[Access]:
    return deque(maxlen=MOST_KEPT)


@dataclass(slots=True)
class Lanes:
    """The lanes of the program that runs."""

    _loads: defaultdict[int, deque[Access]] = field(default_factory=lambda: defaultdict(_several))
    _stores: defaultdict[int, deque[Access]] = field(default_factory=lambda: defaultdict(_several))
    """By allocation."""
    _late: dict[tuple[int, ...], Mask] = field(default_factory=dict)
    """By shape: lanes that may have loaded what a store before which they came put there."""

    def begin(self) -> None:
        """Another program begins."""
        self.meet()
        self._late = {}

    def meet(self) -> None:
        """All lanes have done what came before."""
        self._loads.clear()
        self._stores.clear()

    def load(self, access: Access) -> None:
        """Note who loads."""
        self._late.pop(access.shape, None)
        self._loads[id(access.home)].append(access)

    def store(self, access: Access) -> None:
        """Note who stores."""
        self._stores[id(access.home)].append(access)

    def overtakes(self, store: Access, changing: Changing) -> bool:
        """
        Whether a store changes what lanes of another warp loaded before it, and may not have yet.

        Lanes count where a store lets their value out. Blocks of other shapes, or that lie in memory the other way, go through shared memory if one is made of the other.
        """
        late = self._late.get(store.shape)
        if late is not None and bool(late[store.lanes].any()):
            return True
        loads = self._loads.get(id(store.home), ())
        return any(self._overtakes(store, load, changing) for load in loads if load.meets(store))

    def _overtakes(self, store: Access, load: Access, changing: Changing) -> bool:
        lone = not load.shape
        if lone and math.prod(store.shape) <= WARP:
            return False
        if not lone and (load.shape != store.shape or load.fastest != store.fastest):
            return False
        found = _met(store, load, None, by_all=lone)
        if found.any():
            found = _met(store, load, changing(store.active)[store.lanes], by_all=lone)
        if lone or not found.any():
            return bool(found.any())
        lanes = load.lanes[found]
        stores = np.ones(math.prod(store.shape), dtype=bool) if store.active is None else store.active
        late = self._late.setdefault(store.shape, np.zeros(stores.size, dtype=bool))
        late[lanes] = True
        return bool(stores[lanes].any())


def _met(store: Access, other: Access, chosen: Mask | None, *, by_all: bool = False) -> Mask:
    """
    Which active lanes of the other access have an element to which another warp stores, by one of the `chosen` of the store's.

    `by_all`: every warp makes the other access.
    """
    low = store.low - store.home.span.start
    kept = slice(None) if chosen is None else chosen
    first = np.arange(store.item_bytes)
    owners = np.zeros(store.high - store.low, dtype=np.int32)
    owners[(store.places[kept, None] - low + first).ravel()] = np.repeat(store.warps[kept] + 1, first.size)
    found = np.zeros(other.live.size, dtype=bool)
    mine = 0 if by_all else other.warps + 1
    for byte in range(other.item_bytes):
        at = other.places + byte - low
        inside = (at >= 0) & (at < owners.size)
        owner = np.where(inside, owners[np.where(inside, at, 0)], 0)
        found |= (owner != 0) & (owner != mine)
    return found
