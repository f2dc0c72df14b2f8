"""
Loops whose next turns a compiler begins before the running one has ended: it fetches what they load ahead of what turns before store.

Triton's pipeliner (3.7, `AssignLatencies`, AMD's `StreamPipeline`; seen in the code for gfx942 and sm_90) asks nobody whether the two
meet. It leaves a loop alone that has another loop or a barrier in it, and loads that stand behind a condition or are narrower than 32 bits.
Of the others those are fetched ahead that a dot of the same turn is made of, where the launch has more than one stage, and all
of them where the loop itself says `num_stages`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .lanes import Access, Changing, Places

NARROWEST_BYTES = 4
"""Of what one thread loads at once, to be fetched ahead."""
AHEAD = (
    "loads of {} what this loop stored {}; a compiler fetches ahead what a loop with several stages loads (num_stages), so "
    "keep the value in a variable, give the loop one stage or put a tl.debug_barrier() into it"
)


class _Store(NamedTuple):
    turn: int
    home: int
    low: int
    high: int
    bytes: NDArray[np.int64]
    """Addresses of those that it changed."""


@dataclass(slots=True)
class _Loop:
    reach: int
    """How many turns a load may come before its own; negative where none does."""
    every: bool
    """All loads do, not only those that a dot of the same turn is made of."""
    turn: int = -1
    dots: bool = False
    feeds: bool = False
    """What runs now is made for a dot of this turn."""
    kept: bool = False
    """A compiler leaves it alone."""
    conditions: list[bool] = field(default_factory=list)
    """Around what runs now: whether each is one that a compiler does not know."""
    stores: list[_Store] = field(default_factory=list)
    found: str = ""


@dataclass(slots=True)
class Turns:
    """The loops that the running program is in."""

    stages: int | None = None
    """Of the launch; `None` where it leaves them to the compiler."""
    _loops: list[_Loop] = field(default_factory=list)
    _unrolled: list[bool] = field(default_factory=list)
    """Of all that it is in, those that are loops to a compiler and those that are not."""

    def begin_program(self) -> None:
        """It is in none."""
        self._loops, self._unrolled = [], []

    def enter(self, reach: int, *, every: bool, unrolled: bool) -> None:
        """A loop begins; `unrolled`: it is none to a compiler, as it is known to have one turn at most."""
        self._unrolled.append(unrolled)
        if not unrolled:
            self.keep()
            self._loops.append(_Loop(reach, every))

    def keep(self) -> None:
        """What begins now, in the innermost loop, makes a compiler leave that one alone."""
        if self._loops and not any(self._loops[-1].conditions):
            self._loops[-1].kept = True

    def turn(self) -> None:
        """The next turn of the innermost loop."""
        if self._unrolled[-1]:
            return
        loop = self._loops[-1]
        loop.turn, loop.conditions, loop.feeds = loop.turn + 1, [], False
        loop.stores = [one for one in loop.stores if one.turn >= loop.turn - loop.reach]

    def leave(self) -> str:
        """The innermost loop has ended; what was found in it, in a line."""
        if self._unrolled.pop():
            return ""
        loop = self._loops.pop()
        return loop.found if not loop.kept and (loop.every or loop.dots) else ""

    def barrier(self) -> None:
        """All lanes meet: in none of the loops anything is fetched ahead."""
        for loop in self._loops:
            loop.kept = True

    def fork(self, *, unknown: bool) -> None:
        """What runs now stands behind one more condition; `unknown` to a compiler."""
        if self._loops:
            self._loops[-1].conditions.append(unknown)

    def join(self) -> None:
        """Behind one less."""
        if self._loops:
            self._loops[-1].conditions.pop()

    def feed(self, *, dots: bool) -> None:
        """What runs from now on is made for a dot, or no longer."""
        if self._loops:
            self._loops[-1].feeds = dots

    def dot(self) -> None:
        """The innermost loop has one."""
        if self._loops and not any(self._loops[-1].conditions):
            self._loops[-1].dots = True

    def store(self, access: Access, changing: Changing) -> None:
        """Note what is stored and was not there."""
        loops = [loop for loop in self._loops if loop.reach >= 0 and not loop.kept]
        if not loops:
            return
        changed = changing(access.active)[access.lanes]
        if changed.any():
            bytes_ = _bytes(access.places[changed] + access.home.span.start, access.item_bytes)
            for loop in loops:
                loop.stores.append(_Store(loop.turn, id(access.home), access.low, access.high, bytes_))

    def overtaken(self, access: Access) -> str:
        """When what is loaded was stored, if a compiler may load it earlier; else empty."""
        loop = self._loops[-1] if self._loops else None
        if loop is None or not loop.stores or loop.kept or loop.found or any(loop.conditions):
            return ""
        if not (loop.every or loop.feeds):
            return ""
        met = [
            one.turn
            for one in loop.stores
            if one.home == id(access.home)
            and one.low < access.high
            and access.low < one.high
            and np.isin(_bytes(access.live.astype(np.int64), access.item_bytes), one.bytes).any()
        ]
        if not met or not _is_wide(access):
            return ""
        turns = loop.turn - max(met)
        return f"{turns} turn{'s' if turns > 1 else ''} before" if turns else "in the same turn"

    def note(self, found: str) -> None:
        """Keep what was found in the innermost loop until it has ended."""
        self._loops[-1].found = found


def _bytes(addresses: Places, item_bytes: int) -> Places:
    return (addresses[:, None] + np.arange(item_bytes)).reshape(-1)


def _is_wide(access: Access) -> bool:
    count = NARROWEST_BYTES // access.item_bytes
    if count <= 1:
        return True
    if not access.shape or access.shape[access.fastest] < count:
        return False
    lanes = np.moveaxis(access.addresses, access.fastest, -1)[..., :count].astype(np.int64)
    steps = np.diff(lanes, axis=-1)
    return bool((steps == access.item_bytes).all())
