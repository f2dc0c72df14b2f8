"""
Which of a launch's programs and lanes may read what others wrote: those that were handed it, not those that merely ran later.

The interpreter runs one program after the other and all lanes at once, so that what is a race on a device gives a right
answer there. Here each store is known by the *epoch* in which it was made: a program's stretch from one point at which its
lanes meet, or at which it hands over what it did, to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .traffic import Allocation

Places = NDArray[np.int64]

SPINNING = 1 << 9
"""Looks at single values, with no other access between, after which a program counts as one that waits for another."""
MOST_FLAGS = 64
"""Lanes of an access by which programs may hand over; more are work."""
OTHERS = (
    "loads of {} what another program of the same launch stored and did not hand over; programs run in any order and at once, so use a second "
    "launch, or a tl.debug_barrier() and an atomic that this program looks at"
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


class Waits(Exception):
    """A program waits for another that, in the order in which they are run here, comes later."""


class Access:
    """One access as far as it matters here."""

    __slots__ = ("active", "home", "places", "shape")

    def __init__(
        self,
        home: Allocation,
        addresses: NDArray[np.uint64],
        shape: tuple[int, ...],
        active: NDArray[np.bool_] | None,
    ) -> None:
        self.home = home
        self.places: Places = addresses.astype(np.int64) - home.span.start
        """First byte of each active lane's element, in the allocation."""
        self.shape = shape if math.prod(shape) > 1 else ()
        """Of the whole access; empty where it is of one lane."""
        self.active = active
        """Of all lanes; `None`: all are."""


@dataclass(slots=True)
class Races:
    """The programs of one launch, as they are run."""

    backwards: bool = False
    """Programs are run from the last to the first, so that one may wait for ever for one that its author has seen come first."""
    elsewhere: int = 0
    """Whose arithmetic it is, of many devices (see `elsewhere`); 0 for this one's."""
    fuses: bool = True
    """The launch lets products be fused with sums."""
    waits: bool = False
    """One did."""
    volatile: bool = False
    """The load that runs is one by which a program may wait for another."""
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
    """Lanes have stored since they last met."""
    _seen: dict[int, int] = field(default_factory=dict)
    """Of each program that handed something to the running one, the last epoch that is handed over."""
    _handed: dict[int, dict[int, int]] = field(default_factory=dict)
    """What can be had by looking at an address: programs and epochs, as in `_seen`."""
    _stores: list[Access] = field(default_factory=list)
    _lanes: dict[int, Places] = field(default_factory=dict)
    """Of the running epoch, by allocation: which lane of which shape stored each byte, 0 where none did."""
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    _looks: int = 0

    def begin_launch(self, *, lockstep: bool) -> None:
        """Launches come one after the other: all is handed over."""
        self.lockstep = lockstep
        self._handed = {}

    def begin_program(self) -> None:
        """The next program begins, and knows of no other."""
        self._program += 1
        self._next_epoch()
        self._first = self._epoch
        self._seen, self._loose, self._looks = {}, False, 0

    def meet(self) -> None:
        """All lanes of the program meet: at a barrier, or as they must for a value that all of them make together."""
        if self._loose:
            self._next_epoch()
            self._loose = False

    def barrier(self) -> None:
        """All lanes meet, and what is stored is there for whoever is told."""
        self._next_epoch()
        self._loose = False

    def store(self, access: Access) -> None:
        """Note who stores."""
        if access.home.writers is None:
            access.home.writers = np.zeros(access.home.reads.size, dtype=np.int32)
        access.home.writers[access.places] = self._epoch
        if not self.lockstep:
            self._stores.append(access)
            self._loose = self._loose or bool(access.shape)

    def meets(self, kind: str, access: Access) -> str:
        """What is wrong with an access where memory was written in this launch, with a place for names; empty where nothing is."""
        if kind == "store":
            self.store(access)
            return ""
        return self.load(access) if kind == "load" else self.atomic(access)

    def load(self, access: Access) -> str:
        """See `meets`; a volatile one waits for what it finds."""
        if self.volatile:
            self._look(access)
        elif self._is_unseen(access.home.adders, access.places) or self._is_unseen(
            access.home.writers, access.places
        ):
            return OTHERS
        return LANES if self._is_from_other_lanes(access) else ""

    def atomic(self, access: Access) -> str:
        """See `meets`."""
        home, order = access.home, self.order
        if home.adders is None:
            home.adders = np.zeros(home.reads.size, dtype=np.int32)
        before = home.adders[access.places]
        others = (before != 0) & (np.abs(before) < self._first)
        if (others & (before < 0) if order.wide else others).any():
            return NARROW
        if order.wide and order.acquires:
            self._look(access)
        home.adders[access.places] = self._epoch if order.wide else -self._epoch
        if order.wide and order.releases and access.places.size <= MOST_FLAGS:
            self._hand_over(access)
        if not access.shape:
            self.meet()
        return ""

    def count(self, kind: str, lanes: int) -> None:
        """Notes an access; `Waits` where there have been too many looks at single values since anything else."""
        self._looks = self._looks + 1 if kind != "store" and lanes == 1 else 0
        if self.backwards and self._looks > SPINNING:
            self.waits = True
            raise Waits

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._programs.append(self._program)
        self._stores, self._lanes = [], {}

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
        """The program acquires by these addresses, from atomics and from plain stores that a barrier preceded."""
        if access.places.size > MOST_FLAGS:
            return
        for address, place in zip(self._addresses(access), access.places.tolist(), strict=True):
            for program, epoch in self._handed.get(address, {}).items():
                self._seen[program] = max(self._seen.get(program, 0), epoch)
            if access.home.writers is not None and access.home.writers[place]:
                epoch = int(access.home.writers[place])
                program = self._programs[epoch]
                self._seen[program] = max(self._seen.get(program, 0), epoch)

    def _addresses(self, access: Access) -> list[int]:
        start = access.home.span.start
        return [start + place for place in access.places.tolist()]

    def _is_unseen(self, epochs: NDArray[np.int32] | None, places: Places) -> bool:
        """Whether a program before this one wrote any of it and did not hand it over."""
        if epochs is None:
            return False
        found = np.abs(epochs[places])
        others = found[(found != 0) & (found < self._first)]
        return any(
            self._seen.get(self._programs[epoch], 0) < epoch
            for epoch in (np.unique(others).tolist() if others.size else ())
        )

    def _is_from_other_lanes(self, access: Access) -> bool:
        """Whether lanes read what others stored since all of them last met."""
        for stored in self._stores:
            key = id(stored.home)
            if key not in self._lanes:
                self._lanes[key] = np.zeros(stored.home.reads.size, dtype=np.int64)
            self._lanes[key][stored.places] = self._keys(stored)
        self._stores = []
        known = self._lanes.get(id(access.home))
        if known is None:
            return False
        stored_by = known[access.places]
        return bool(((stored_by != 0) & (stored_by != self._keys(access))).any())

    def _keys(self, access: Access) -> Places:
        """A number for each active lane, equal for the same lane of accesses of one shape."""
        number = 1 + self._shapes.setdefault(access.shape, len(self._shapes))
        lanes = np.arange(access.places.size) if access.active is None else np.flatnonzero(access.active)
        return (number << 40) + lanes
