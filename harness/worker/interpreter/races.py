"""
Finds loads of values that another program or lane stored, but that were not handed over to the loading program or lane.

The interpreter runs one program after the other and all lanes at once, so a race on a device gives a correct result there.
Here each store is noted with its *epoch*. A program's epoch ends where its lanes meet after stores, or where the program
hands over what it did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .lanes import OVERTAKES, Access, Changing, Lanes, Places
from .places import spread

MOST_FLAGS = 64
"""Most lanes of an access that hands over between programs; wider accesses are work."""
OTHERS = (
    "loads elements of {} that another program of the same launch stored and did not hand over; programs run in any order and "
    "at the same time, so use a second launch, or a tl.debug_barrier() and then an atomic that this program reads (a flag that "
    "is only stored hands nothing over)"
)
LANES = (
    "loads elements of {} that other lanes of this program stored; lanes do not wait for each other, so put a "
    "tl.debug_barrier() between"
)
NARROW = "{} is changed by several programs and by an atomic whose scope is one program; leave `scope` at its default"


class Order(NamedTuple):
    """How an atomic orders other accesses."""

    wide: bool = True
    """Its scope is all programs, not only its own."""
    acquires: bool = True
    releases: bool = True


@dataclass(slots=True)
class Races:
    """Finds races in the programs of one launch, access by access."""

    volatile: bool = False
    """The current load is volatile: a program may wait for another program by it."""
    changing: Changing | None = None
    """Lanes of the current store that change memory; `None`: all."""
    order: Order = field(default_factory=Order)
    """Order of the current atomic."""
    lockstep: bool = False
    """A program has one warp, so all its lanes run together."""
    _epoch: int = 0
    _first: int = 1
    """First epoch of the running program."""
    _programs: list[int] = field(default_factory=lambda: [0])
    """The program of each epoch."""
    _program: int = 0
    _loose: bool = False
    """Lanes have stored or added since they last met."""
    _seen: dict[int, int] = field(default_factory=dict)
    """Last epoch, by program, that was handed over to the running program."""
    _handed: dict[int, dict[int, int]] = field(default_factory=dict)
    """Programs and epochs (as in `_seen`), by address, that an acquire there gets."""
    _stores: list[Access] = field(default_factory=list)
    """Stores since lanes last met that are not in `_stored_by` yet."""
    _stored_by: dict[int, Places] = field(default_factory=dict)
    """Shape and lane, by allocation, that stored each byte since lanes last met; 0 for none."""
    _shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    lanes: Lanes = field(default_factory=Lanes)
    """Loads of the running program, if it has more than one warp."""

    def begin_launch(self, *, lockstep: bool) -> None:
        """Begin a launch: all its programs see everything that was stored before."""
        self.lockstep = lockstep
        self._handed = {}

    def begin_program(self) -> None:
        """Begin the next program; nothing was handed over to it yet."""
        self._program += 1
        self.barrier()
        self._first = self._epoch
        self._seen = {}
        self.lanes.begin()

    def meet(self) -> None:
        """All lanes of the program meet: at a barrier, or for a value that they compute together."""
        self.lanes.meet()
        self._stores, self._stored_by = [], {}
        if self._loose:
            self._next_epoch()
            self._loose = False

    def barrier(self) -> None:
        """All lanes meet, and a later atomic can hand over what they stored."""
        self.lanes.meet()
        self._stores, self._stored_by = [], {}
        self._next_epoch()
        self._loose = False

    def look_at(self, kind: str, access: Access) -> str:
        """The race of an access (`load`, `store` or `atomic`), with `{}` for the tensor's name; empty if there is none."""
        self._settle(kind, access)
        if kind == "load":
            return self._load(access)
        return self._atomic(access) if kind == "atomic" else self._store(access)

    def _store(self, access: Access) -> str:
        home = access.home
        overtakes = not self.lockstep and self.lanes.overtakes(access, self.changing or access.all_lanes)
        if home.writers is None:
            home.writers = np.zeros(home.reads.size, dtype=np.int32)
        home.writers[access.noted] = self._epoch
        self._note_store(access)
        return OVERTAKES if overtakes else ""

    def _note_store(self, access: Access) -> None:
        if not self.lockstep:
            self._stores.append(access)
            self._loose = self._loose or bool(access.shape)

    def _load(self, access: Access) -> str:
        """A volatile load may wait for the result of an atomic. It orders nothing for a plain store of another program."""
        if not self.lockstep:
            self.lanes.load(access)
        if access.home.writers is None and access.home.adders is None:
            return ""
        waits = self.volatile and access.places.size <= MOST_FLAGS
        if waits:
            self._acquire(access)
        changes = (access.home.writers,) if waits else access.home.changes
        if any(self._unseen(epochs, access.noted) for epochs in changes):
            return OTHERS
        return LANES if self._is_from_other_lanes(access) else ""

    def _atomic(self, access: Access) -> str:
        home, order = access.home, self.order
        if home.adders is None or home.adders_before is None:
            home.adders, home.adders_before = np.zeros((2, home.reads.size), dtype=np.int32)
        noted = access.noted
        before = home.adders[noted]
        foreign = (before != 0) & (np.abs(before) < self._first)
        if (foreign & (before < 0) if order.wide else foreign).any():
            return NARROW
        if order.wide and order.acquires:
            self._acquire(access)
        home.adders_before[noted[foreign]] = np.abs(before[foreign])
        home.adders[noted] = self._epoch if order.wide else -self._epoch
        if order.wide and order.releases and access.places.size <= MOST_FLAGS:
            self._hand_over(access)
        self._note_store(access)
        if not access.shape:
            self.meet()
        return ""

    def _next_epoch(self) -> None:
        self._epoch += 1
        self._programs.append(self._program)

    def _hand_over(self, access: Access) -> None:
        """Programs that acquire at these addresses see what this program did and what was handed over to it."""
        done = self._epoch - 1 if self._loose else self._epoch
        for address in access.live.tolist():
            handed = self._handed.setdefault(address, {})
            for program, epoch in ((self._program, done), *self._seen.items()):
                handed[program] = max(handed.get(program, 0), epoch)
        if not self._loose:
            self._next_epoch()

    def _acquire(self, access: Access) -> None:
        """See what other programs released by atomics at these addresses."""
        if access.places.size > MOST_FLAGS:
            return
        for address in access.live.tolist():
            for program, epoch in self._handed.get(address, {}).items():
                self._seen[program] = max(self._seen.get(program, 0), epoch)

    def _unseen(self, epochs: NDArray[np.int32] | None, places: Places) -> bool:
        """Whether an earlier program wrote any of the places and did not hand it over."""
        if epochs is None:
            return False
        written = np.abs(epochs[places])
        foreign = np.unique(written[(written != 0) & (written < self._first)])
        return any(self._seen.get(self._programs[epoch], 0) < epoch for epoch in foreign.tolist())

    def _settle(self, kind: str, access: Access) -> None:
        """Elements of one size are noted at their first byte; elements of several sizes at each byte."""
        home = access.home
        if home.grain_bytes == 0 and kind != "load":
            home.grain_bytes = access.item_bytes
        if home.grain_bytes not in (0, 1, access.item_bytes):
            if id(home) in self._stored_by:
                spread(self._stored_by[id(home)], home.grain_bytes)
            home.spread()

    def _is_from_other_lanes(self, access: Access) -> bool:
        """Whether lanes load what other lanes stored since they last met. One lane stores a lone value, every warp loads it."""
        for store in self._stores:
            key = id(store.home)
            if key not in self._stored_by:
                self._stored_by[key] = np.zeros(store.home.reads.size, dtype=np.int64)
            self._stored_by[key][store.noted] = self._keys(store)
        self._stores = []
        notes = self._stored_by.get(id(access.home))
        if notes is None:
            return False
        stored_by = notes[access.noted]
        if not access.shape:
            return bool(stored_by.any())
        return bool(((stored_by != 0) & (stored_by != self._keys(access))).any())

    def _keys(self, access: Access) -> Places:
        """A number for each active lane, equal for the same lane of accesses of one shape."""
        number = 1 + self._shapes.setdefault(access.shape, len(self._shapes))
        lanes = access.lanes
        return (number << 40) + np.repeat(lanes, access.noted.size // lanes.size)
