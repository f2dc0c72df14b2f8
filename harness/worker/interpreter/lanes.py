"""
Races between the lanes of one program, between two points where all lanes meet.

Triton puts barriers where lanes exchange values through shared memory, but not between accesses of global memory: there,
warps do not wait for each other. The interpreter runs all lanes of an access at once, so a race would go unseen.
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
"""For a store and its flat mask (`None`: all lanes are active): whether each active lane changes the value in memory."""

WARP = 64
"""Most lanes that run together, over all targets."""
MOST_KEPT = 512
"""Accesses of one allocation that are kept between two points where lanes meet; older accesses are forgotten."""
OVERTAKES = (
    "stores to elements of {} that other lanes of this program loaded before, or may still have to load; lanes do not wait "
    "for each other, so put a tl.debug_barrier() between"
)


class Access:
    """The addresses and active lanes of one access to one allocation."""

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
        """
        `live`: addresses of the active lanes, at least one, of all `addresses`. `active`: flat; `None` if all are active.

        `span`: addresses from the first byte up to, not including, the end, if known.
        """
        self.home = home
        self.live = live
        self.addresses = addresses
        self.shape: tuple[int, ...] = addresses.shape if addresses.size > 1 else ()
        """Empty for an access by one lane."""
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
        """Bytes at which the access is noted: its `places`, or all bytes of the first lane, then of the next."""
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
        """The axis with the smallest step in memory: a compiler distributes lanes over threads along this axis."""
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
        """A number for each active lane, different for lanes that may be in different warps."""
        lanes, fastest = self.lanes, self.fastest
        if fastest != len(self.shape) - 1:
            order = np.moveaxis(np.arange(math.prod(self.shape)).reshape(self.shape), fastest, -1).ravel()
            ranks = np.empty_like(order)
            ranks[order] = np.arange(order.size)
            lanes = ranks[lanes]
        return lanes // WARP

    def meets(self, other: Access) -> bool:
        """Whether two accesses of one allocation may touch the same bytes by different lanes."""
        if self.low >= other.high or other.low >= self.high:
            return False
        same = self.shape == other.shape and self.live.size == other.live.size
        return not (same and np.array_equal(self.addresses, other.addresses))


@dataclass(slots=True)
class Lanes:
    """The loads of the running program since its lanes last met."""

    _loads: defaultdict[int, deque[Access]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=MOST_KEPT))
    )
    """Loads by allocation."""
    _late: dict[tuple[int, ...], Mask] = field(default_factory=dict)
    """Lanes by shape: lanes with a load that may have seen a later store."""

    def begin(self) -> None:
        """Begin the next program."""
        self.meet()
        self._late = {}

    def meet(self) -> None:
        """All lanes have done the accesses before this point."""
        self._loads.clear()

    def load(self, access: Access) -> None:
        """Note a load."""
        self._late.pop(access.shape, None)
        self._loads[id(access.home)].append(access)

    def overtakes(self, store: Access, changing: Changing) -> bool:
        """
        Whether a store changes elements that lanes of another warp load before it, but may load late.

        It counts only if such a lane also stores. Blocks of different shapes or memory orders are converted through shared
        memory if one is computed from the other, so they do not count.
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
        overwritten = _overwritten(store, load, None)
        if overwritten.any():
            overwritten = _overwritten(store, load, changing(store.active)[store.lanes])
        if lone or not overwritten.any():
            return bool(overwritten.any())
        lanes = load.lanes[overwritten]
        stores = np.ones(math.prod(store.shape), dtype=bool) if store.active is None else store.active
        late = self._late.setdefault(store.shape, np.zeros(stores.size, dtype=bool))
        late[lanes] = True
        return bool(stores[lanes].any())


def _overwritten(store: Access, load: Access, chosen: Mask | None) -> Mask:
    """Active lanes of the load with an element to which a `chosen` lane of another warp stores. Every warp loads a lone value."""
    low = store.low - store.home.span.start
    kept = slice(None) if chosen is None else chosen
    first = np.arange(store.item_bytes)
    owners = np.zeros(store.high - store.low, dtype=np.int32)
    owners[(store.places[kept, None] - low + first).ravel()] = np.repeat(store.warps[kept] + 1, first.size)
    overwritten = np.zeros(load.live.size, dtype=bool)
    own = load.warps + 1 if load.shape else 0
    for byte in range(load.item_bytes):
        at = load.places + byte - low
        inside = (at >= 0) & (at < owners.size)
        owner = np.where(inside, owners[np.where(inside, at, 0)], 0)
        overwritten |= (owner != 0) & (owner != own)
    return overwritten
