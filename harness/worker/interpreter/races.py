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
from .turns import Turns

SPINNING = 1 << 9
"""Looks at single values, with no other access between, after which a program counts as one that waits for another."""
MOST_FLAGS = 64
"""Lanes of an access by which programs may hand over; more are work."""
OTHERS = (
    "loads of {} what another program of the same launch stored and did not hand over; programs run in any order and at once, so use a second "
    "launch, or a tl.debug_barrier() and then an atomic that this program looks at (a flag that is merely stored hands nothing over)"
)
OTHERS_READ = (
    "stores to {} what another program of the same launch loaded before it, and that need not have loaded yet; let it say so after its "
    "load, by a tl.debug_barrier() and an atomic that this program looks at"
)
LANES = "loads of {} what other lanes of this program stored, which go their own ways; put a tl.debug_barrier() between"
STREAMED = "touches {} where this program stored by a descriptor, which it cannot wait for; keep the values instead, or use a second launch"
STREAMS = (
    "loads of {} by a descriptor what this program stored by pointers, which the engine that moves the tile does not wait for; keep the "
    "values instead, or use a second launch"
)
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


@dataclass(slots=True)
class Races:
    """The programs of one launch, as they are run."""

    backwards: bool = False
    """Programs are run from the last to the first, so that one may wait for ever for one that its author has seen come first."""
    in_order: bool = False
    """Programs are not, for they wait; lanes and values are as where they are."""
    elsewhere: int = 0
    """Whose arithmetic it is, of many devices (see `elsewhere`); 0 for this one's."""
    fuses: bool = True
    """The launch lets products be fused with sums."""
    waits: bool = False
    """One did."""
    volatile: bool = False
    """The load that runs is one by which a program may wait for another."""
    changing: Changing | None = None
    """Of the store that runs; where nobody knows, each changes what is there."""
    order: Order = field(default_factory=Order)
    """Of the atomic that runs."""
    by_engine: bool = False
    """The access that runs goes by a descriptor, beside the program's lanes."""
    lockstep: bool = False
    """All lanes of a program go together: it has one warp."""
    clustered: bool = False
    """A program is several groups of lanes, which wait for each other at no barrier (`num_ctas`)."""
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
    unread: bool = False
    """Nobody uses what the operation that runs gives, so that a compiler lets no lanes meet for it."""
    _stores: list[Access] = field(default_factory=list)
    """Since lanes last met: those that are not noted in `_stored_by` yet."""
    _stored_by: dict[int, Places] = field(default_factory=dict)
    """Since lanes last met, by allocation: which lane of which shape stored each byte, 0 where none did."""
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    _looks: int = 0
    lanes: Lanes = field(default_factory=Lanes)
    """Of the running program, where there is more than one warp."""
    turns: Turns = field(default_factory=Turns)
    contested: Mask | None = None
    """Of the access that runs, where programs run backwards: lanes to whose place another warp stored, in no order."""
    rivals: Mask | None = None
    """Likewise another program."""
    early: Mask | None = None
    """Of the atomic that runs, where programs run backwards: lanes that may find what is there before other programs add, who did already."""
    disputed: set[int] = field(default_factory=set)
    """Addresses at which programs of the launch stored one value and another in no order."""

    def begin_launch(self, *, lockstep: bool, clustered: bool = False) -> None:
        """Launches come one after the other: all is handed over."""
        self.lockstep = lockstep and not clustered
        self.clustered = clustered
        self._handed = {}
        self.disputed.clear()

    def begin_program(self) -> None:
        """The next program begins, and knows of no other."""
        self._program += 1
        self._next_epoch()
        self._stores, self._stored_by = [], {}
        self._first = self._epoch
        self._seen, self._loose, self._looks = {}, False, 0
        self.lanes.begin()
        self.turns.begin_program()

    def meet(self) -> None:
        """All lanes of the program meet: at a barrier, or as they must for a value that all of them make together."""
        if self.clustered or self.unread:
            return
        self.lanes.meet()
        self._stores, self._stored_by = [], {}
        if self._loose:
            self._next_epoch()
            self._loose = False

    def barrier(self) -> None:
        """All lanes meet, and what is stored is there for whoever is told."""
        self.lanes.meet()
        self.turns.barrier()
        self._next_epoch()
        self._stores, self._stored_by = [], {}
        self._loose = False

    def store(self, access: Access) -> None:
        """Note who stores."""
        if access.home.writers is None:
            access.home.writers = np.zeros(access.home.reads.size, dtype=np.int32)
        access.home.writers[access.noted] = self._epoch
        if not self.lockstep:
            self.lanes.store(access)
            self._stores.append(access)
            self._loose = self._loose or bool(access.shape)

    def meets(self, kind: str, access: Access) -> str:
        """What is wrong with an access, with a place for names; empty where nothing is."""
        self._settle(kind, access)
        streamed = self._streams(kind, access)
        if streamed:
            return streamed
        changing = (self.changing if kind == "store" else None) or access.all_lanes
        if kind != "load":
            self.turns.store(access, changing)
        if kind == "store":
            wrong = not self.lockstep and self.lanes.overtakes(access, changing)
            if self.in_order and self._overtakes_readers(access, changing):
                return OTHERS_READ
            if self.backwards:
                unseen = access.of_lanes(self._unseen(access.home.writers, access.noted))
                self.rivals = _either(self.rivals, access, unseen)
                self._contest(access)
            self.store(access)
            return OVERTAKES if wrong else ""
        return self.load(access) if kind == "load" else self.atomic(access)

    def _streams(self, kind: str, access: Access) -> str:
        """See `meets`; of what this program stored by a descriptor, or by pointers before one loads it."""
        home, mine = access.home, self._first
        known = None if self.by_engine and kind == "store" else home.streamed
        if known is not None and (known[access.noted] >= mine).any():
            return STREAMED
        if not self.by_engine:
            return ""
        if kind == "store":
            if home.streamed is None:
                home.streamed = np.zeros(home.reads.size, dtype=np.int32)
            home.streamed[access.noted] = self._epoch
            return ""
        stored = (one for one in (home.writers, home.adders) if one is not None)
        return STREAMS if any((np.abs(one[access.noted]) >= mine).any() for one in stored) else ""

    def load(self, access: Access) -> str:
        """See `meets`; a volatile one waits for what atomics leave there, and orders nothing where others merely store."""
        if not self.lockstep:
            self.lanes.load(access)
        if self.in_order:
            self._note_reader(access)
        if access.home.writers is None and access.home.adders is None:
            return ""
        waits = self.volatile and access.places.size <= MOST_FLAGS
        if waits:
            self._look(access)
        changes = (access.home.writers,) if waits else access.home.changes
        if any(self._unseen(epochs, access.noted).any() for epochs in changes):
            return OTHERS
        return LANES if self._is_from_other_lanes(access) else ""

    def atomic(self, access: Access) -> str:
        """See `meets`."""
        home, order = access.home, self.order
        if home.adders is None or home.adders_before is None:
            home.adders, home.adders_before = np.zeros((2, home.reads.size), dtype=np.int32)
        if self.backwards:
            self._contest(access)
        noted = access.noted
        before = home.adders[noted]
        others = (before != 0) & (np.abs(before) < self._first)
        if (others & (before < 0) if order.wide else others).any():
            return NARROW
        if order.wide and order.acquires:
            self._look(access)
        if self.backwards:
            unseen = self._unseen(home.adders, noted) | self._unseen(home.adders_before, noted)
            self.early = _either(None, access, access.of_lanes(unseen))
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

    def count(self, kind: str, lanes: int) -> None:
        """Notes an access; `Waits` where there have been too many looks at single values since anything else."""
        self._looks = self._looks + 1 if kind != "store" and lanes == 1 else 0
        if self.backwards and not self.in_order and self._looks > SPINNING:
            self.waits = True
            raise Waits

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
        if home.grain_bytes == 0 and (self.in_order or kind != "load"):
            home.grain_bytes = access.item_bytes
        if home.grain_bytes not in (0, 1, access.item_bytes):
            if id(home) in self._stored_by:
                spread(self._stored_by[id(home)], home.grain_bytes)
            home.spread()

    def _overtakes_readers(self, store: Access, changing: Changing) -> bool:
        read = store.of_lanes(self._unseen(store.home.readers, store.noted))
        return bool(read.any()) and bool(changing(store.active)[store.lanes[read]].any())

    def _note_reader(self, access: Access) -> None:
        home = access.home
        if home.readers is None:
            home.readers = np.zeros(home.reads.size, dtype=np.int32)
        noted = access.noted
        home.readers[noted[~self._unseen(home.readers, noted)]] = self._epoch

    def _contest(self, access: Access) -> None:
        if not self.lockstep:
            self.contested = _either(self.contested, access, self.lanes.contested(access))

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


def _either(known: Mask | None, access: Access, found: Mask) -> Mask | None:
    """Of all lanes of an access, those that are known, and the active ones that were `found`; `None` where there are none."""
    if not found.any():
        return known
    lanes = np.zeros(access.addresses.size, dtype=bool) if known is None else known
    lanes[access.lanes[found]] = True
    return lanes
