"""
Which of a launch's programs and lanes may read what others wrote: those that were handed it, not those that merely ran later.

The interpreter runs one program after the other and all lanes at once, so that what is a race on a device gives a right
answer there. Here each store is known by the *epoch* in which it was made: a program's stretch from one point at which its
lanes meet, or at which it hands over what it did, to the next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .lanes import OVERTAKES, Access, Changing, Lanes, Mask, Places
from .places import spread

MOST_FLAGS = 64
"""Lanes of an access by which programs may hand over; more are work."""
OTHERS = (
    "loads of {} what another program of the same launch stored and did not hand over; programs run in any order and at once, so use a second "
    "launch, or a tl.debug_barrier() and then an atomic that this program looks at (a flag that is merely stored hands nothing over)"
)
LANES = "loads of {} what other lanes of this program stored, which go their own ways; put a tl.debug_barrier() between"
NARROW = (
    "{} is changed by several programs and by an atomic whose scope is one program; leave `scope` as it is"
)


class Order(NamedTuple):
    """What an atomic orders beside its own change."""

    wide: bool = True
    """It is one for all programs, not for its own alone."""
    acquires: bool = True
    releases: bool = True


@dataclass(slots=True)
class Races:
    """The programs of one launch, as they are run."""

    volatile: bool = False
    """The load that runs is one by which a program may wait for another."""
    changing: Changing | None = None
    """Of the store that runs; where nobody knows, each changes what is there."""
    order: Order = field(default_factory=Order)
    """Of the atomic that runs."""
    lockstep: bool = False
    """All lanes of a program go together: it has one warp."""
    _epoch: int = 0
    _first: int = 1
    """Epoch in which the running program began."""
    _programs: list[int] = field(default_factory=lambda: [0])
    """Of each epoch."""
    _program: int = 0
    _loose: bool = False
    """Lanes have stored or added since they last met."""
    _seen: dict[int, int] = field(default_factory=dict)
    """Of each program that handed something to the running one, the last epoch that is handed over."""
    _handed: dict[int, dict[int, int]] = field(default_factory=dict)
    """What can be had by looking at an address: programs and epochs, as in `_seen`."""
    _stores: list[Access] = field(default_factory=list)
    """Since lanes last met: those that are not noted in `_stored_by` yet."""
    _stored_by: dict[int, Places] = field(default_factory=dict)
    """Since lanes last met, by allocation: which lane of which shape stored each byte, 0 where none did."""
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    """Of the running program, where there is more than one warp."""

    def begin_launch(self, *, lockstep: bool) -> None:
        """A launch begins: everything that was stored before it is visible to all of its programs."""
        self.lockstep = lockstep
        self._handed = {}

    def begin_program(self) -> None:
        """The next program begins; nothing was handed to it yet."""
        self._program += 1
        self._next_epoch()
        self._stores, self._stored_by = [], {}
        self._first = self._epoch
        self._seen, self._loose = {}, False
        self.lanes.begin()

    def meet(self) -> None:
        """All lanes of the program meet: at a barrier, or for a value that all of them compute together."""
        self.lanes.meet()
        self._stores, self._stored_by = [], {}
        if self._loose:
            self._next_epoch()
            self._loose = False

    def barrier(self) -> None:
        """All lanes meet, and what is stored is there for whoever is told."""
        self.lanes.meet()
        self._next_epoch()
        self._stores, self._stored_by = [], {}
        self._loose = False

    def look_at(self, kind: str, access: Access) -> str:
        """What is wrong with an access (`load`, `store` or `atomic`), with `{}` for the tensor's name; empty where nothing is."""
        self._settle(kind, access)
        if kind == "load":
            return self._load(access)
        if kind == "atomic":
            return self._atomic(access)
        return self._store(access)

    def _store(self, access: Access) -> str:
        home = access.home
        overtakes = not self.lockstep and self.lanes.overtakes(access, self.changing or access.all_lanes)
        if home.writers is None:
            home.writers = np.zeros(home.reads.size, dtype=np.int32)
        home.writers[access.noted] = self._epoch
        if not self.lockstep:
            self.lanes.store(access)
            self._stores.append(access)
            self._loose = self._loose or bool(access.shape)
        return OVERTAKES if overtakes else ""

    def _load(self, access: Access) -> str:
        """A volatile load waits for what atomics leave there, and orders nothing where others merely store."""
        if not self.lockstep:
            self.lanes.load(access)
        if access.home.writers is None and access.home.adders is None:
            return ""
        waits = self.volatile and access.places.size <= MOST_FLAGS
        if waits:
            self._look(access)
        changes = (access.home.writers,) if waits else access.home.changes
        if any(self._unseen(epochs, access.noted).any() for epochs in changes):
            return OTHERS
        return LANES if self._is_from_other_lanes(access) else ""

    def _atomic(self, access: Access) -> str:
        home, order = access.home, self.order
        if home.adders is None or home.adders_before is None:
            home.adders, home.adders_before = np.zeros((2, home.reads.size), dtype=np.int32)
        noted = access.noted
        before = home.adders[noted]
        others = (before != 0) & (np.abs(before) < self._first)
        if (others & (before < 0) if order.wide else others).any():
            return NARROW
        if order.wide and order.acquires:
            self._look(access)
        home.adders_before[noted[others]] = np.abs(before[others])
        home.adders[noted] = self._epoch if order.wide else -self._epoch
        if order.wide and order.releases and access.places.size <= MOST_FLAGS:
            self._hand_over(access)
        if not self.lockstep:
            self._stores.append(access)
            self._loose = self._loose or bool(access.shape)
        if not access.shape:
            self.meet()
        return ""

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._programs.append(self._program)

    def _hand_over(self, access: Access) -> None:
        """Whoever acquires by these addresses sees what this program did, and what it was handed itself."""
        done = self._epoch - 1 if self._loose else self._epoch
        for address in self._addresses(access):
            handed = self._handed.setdefault(address, {})
            for program, epoch in ((self._program, done), *self._seen.items()):
                handed[program] = max(handed.get(program, 0), epoch)
        if not self._loose:
            self._next_epoch()

    def _look(self, access: Access) -> None:
        """The program acquires by these addresses what others released by atomics there."""
        if access.places.size > MOST_FLAGS:
            return
        for address in self._addresses(access):
            for program, epoch in self._handed.get(address, {}).items():
                self._seen[program] = max(self._seen.get(program, 0), epoch)

    def _addresses(self, access: Access) -> list[int]:
        start = access.home.span.start
        return [start + place for place in access.places.tolist()]

    def _unseen(self, epochs: NDArray[np.int32] | None, places: Places) -> Mask:
        """Whether a program before this one wrote each place and did not hand it over."""
        if epochs is None:
            return np.zeros(places.size, dtype=bool)
        found = np.abs(epochs[places])
        others: Mask = (found != 0) & (found < self._first)
        if not others.any():
            return others
        unseen = [
            epoch
            for epoch in np.unique(found[others]).tolist()
            if self._seen.get(self._programs[epoch], 0) < epoch
        ]
        left: Mask = np.isin(found, unseen)
        return left

    def _settle(self, kind: str, access: Access) -> None:
        """Elements of one size are known by their first byte; where there are others, each byte counts."""
        home = access.home
        if home.grain_bytes == 0 and kind != "load":
            home.grain_bytes = access.item_bytes
        if home.grain_bytes not in (0, 1, access.item_bytes):
            if id(home) in self._stored_by:
                spread(self._stored_by[id(home)], home.grain_bytes)
            home.spread()

    def _is_from_other_lanes(self, access: Access) -> bool:
        """Whether lanes read what others stored since all of them last met; one value is stored by one lane and loaded by every warp."""
        for stored in self._stores:
            key = id(stored.home)
            if key not in self._stored_by:
                self._stored_by[key] = np.zeros(stored.home.reads.size, dtype=np.int64)
            self._stored_by[key][stored.noted] = self._keys(stored)
        self._stores = []
        known = self._stored_by.get(id(access.home))
        if known is None:
            return False
        stored_by = known[access.noted]
        if not access.shape:
            return bool(stored_by.any())
        return bool(((stored_by != 0) & (stored_by != self._keys(access))).any())

    def _keys(self, access: Access) -> Places:
        """A number for each active lane, equal for the same lane of accesses of one shape."""
        number = 1 + self._shapes.setdefault(access.shape, len(self._shapes))
        lanes = access.lanes
        return (number << 40) + np.repeat(lanes, access.noted.size // lanes.size)
