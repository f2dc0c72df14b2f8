"""Loads, stores and atomics on real memory, each kept inside what the launch may touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from triton._C.libtriton import interpreter as native

from harness.worker.interpreter import whereabouts
from harness.worker.interpreter.allocations import Allocation
from harness.worker.interpreter.past import LEFT
from harness.worker.interpreter.places import Places, is_marked, mark, places_of
from harness.worker.interpreter.traffic import Observation

from .together import Apart

Array = Any
_RMW = {
    1: native.RMW_OP.AND, 2: native.RMW_OP.OR, 3: native.RMW_OP.XOR, 4: native.RMW_OP.ADD, 5: native.RMW_OP.FADD,
    6: native.RMW_OP.MAX, 7: native.RMW_OP.MIN, 8: native.RMW_OP.UMAX, 9: native.RMW_OP.UMIN, 10: native.RMW_OP.XCHG,
}  # fmt: skip
"""By the IR's numbers."""
_UNSIGNED = (8, 9)
_ORDER = native.MEM_SEMANTIC.ACQUIRE_RELEASE


UNALIGNED = (
    "{kind} of {bytes} bytes at an address that is no multiple of {bytes}, which this target does not do"
)


class Outside(Exception):
    """An access of memory that is no tensor's, that an earlier call left, or that the target cannot do there."""


class _Later:
    """What programs that run at once loaded and stored."""

    def __init__(self) -> None:
        self.stores: list[tuple[Array, Array, Array]] = []
        """Addresses, values and lanes."""
        self.stored: list[tuple[Allocation, Places, int]] = []
        self._marks: dict[tuple[str, int], NDArray[np.uint8]] = {}

    def note(self, kind: str, known: Allocation, places: Places, item_bytes: int) -> None:
        """An access; `Apart` where it meets what is stored at another time."""
        for other in ("load", "store") if kind == "store" else ("store",):
            marks = self._marks.get((other, known.span.start))
            if marks is not None and is_marked(marks, places, item_bytes):
                raise Apart
        marks = self._marks.get((kind, known.span.start))
        if marks is None:
            marks = self._marks[kind, known.span.start] = np.zeros_like(known.writes)
        mark(marks, places, item_bytes)
        if kind == "store":
            self.stored.append((known, places, item_bytes))


class Memory:
    """What one launch may touch; what it reads and writes is noted in the observation."""

    def __init__(self, observation: Observation, *, is_cuda: bool = False) -> None:
        """`is_cuda`: loads and stores have to be of multiples of their size, as atomics have to be everywhere."""
        self._observation = observation
        self.is_cuda = is_cuda
        self._last: Allocation | None = None
        self._later: _Later | None = None
        """While several programs run at once."""

    def load(self, places: Array, dtype: np.dtype[Any], mask: Array | None, other: Array | None) -> Array:
        """Values in memory; `other`, or zeros, where the mask leaves lanes out."""
        if self._later is not None:
            places = _stretched(places, *(one for one in (mask, other) if one is not None))
        at, lanes = self._lanes("load", places, dtype, mask)
        raw = np.dtype(f"u{dtype.itemsize}")
        rest = _whole(0 if other is None else other, at.shape).astype(dtype, copy=False).view(raw)
        found = native.load(at, lanes, rest, raw)
        if dtype == np.bool_:
            return found.astype(np.bool_).reshape(np.shape(places))
        return found.view(dtype).reshape(np.shape(places))

    def store(self, places: Array, values: Array, mask: Array | None) -> None:
        """Puts values into memory, of several lanes at one place that of the last."""
        values = np.asarray(values)
        if self._later is not None:
            places = _stretched(places, values, *(() if mask is None else (mask,)))
        at, lanes = self._lanes("store", places, values.dtype, mask)
        raw = _whole(values, at.shape).view(f"u{values.dtype.itemsize}")
        if self._later is None:
            native.store(at, raw, lanes)
        else:
            self._later.stores.append((at, raw, lanes))

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """
        In the block several programs run at once: what they store is in memory behind it, and not at all where they raise.

        `Apart` where one program's access may meet what another stores, or where the order of two stores counts.
        """
        self._later = later = _Later()
        try:
            yield
        finally:
            self._later = None
        for known, places, item_bytes in later.stored:
            self._touch("store", known, places, item_bytes)
        for at, raw, lanes in later.stores:
            native.store(at, raw, lanes)

    def change(self, operation: int, places: Array, values: Array, mask: Array | None) -> Array:
        """What stood there before an atomic operation, lane after lane."""
        self._in_order()
        values = np.asarray(values)
        at, lanes = self._lanes("atomic", places, values.dtype, mask)
        given = _whole(values, at.shape)
        if values.dtype.kind == "V":
            return self._added(at, given, lanes).reshape(np.shape(places))
        if operation in _UNSIGNED:
            given = given.view(f"u{values.dtype.itemsize}")
        found = native.atomic_rmw(_RMW[operation], at, given, lanes, _ORDER)
        return found.view(values.dtype).reshape(np.shape(places))

    def swap(self, places: Array, expected: Array, values: Array) -> Array:
        """What stood there before `values` took its place where that was `expected`."""
        self._in_order()
        values = np.asarray(values)
        at, _ = self._lanes("atomic", places, values.dtype, None)
        raw = f"i{values.dtype.itemsize}"
        wanted, given = (_whole(one, at.shape).view(raw) for one in (expected, values))
        found = native.atomic_cas(at, wanted, given, _ORDER)
        return found.view(values.dtype).reshape(np.shape(places))

    def number(self, places: Array) -> Array:
        """Addresses as numbers, which are others where memory lies elsewhere."""
        return self._led(whereabouts.moved, places)

    def place(self, numbers: Array) -> Array:
        """What such numbers lead to."""
        return self._led(whereabouts.led_back, numbers)

    def _in_order(self) -> None:
        """What programs do one after the other alone."""
        if self._later is not None:
            raise Apart

    def _led(self, change: Callable[[Observation, Array], Array], values: Array) -> Array:
        if not self._observation.programs.elsewhere:
            return values
        self._in_order()
        return np.asarray(change(self._observation, np.asarray(values).view(np.uint64))).view(np.int64)[()]

    def _added(self, at: Array, values: Array, lanes: Array) -> Array:
        """Sums in a type that the interpreter's own atomics do not know."""
        raw = np.dtype(f"u{values.dtype.itemsize}")
        old = np.zeros(at.shape, dtype=values.dtype)
        one = np.ones(1, dtype=bool)
        for lane in np.flatnonzero(lanes):
            place = at.reshape(-1)[lane : lane + 1]
            old.reshape(-1)[lane] = native.load(place, one, np.zeros(1, raw), raw).view(values.dtype)[0]
            total = old.reshape(-1)[lane : lane + 1] + values.reshape(-1)[lane]
            native.store(place, total.astype(values.dtype).view(raw), one)
        return old

    def _lanes(
        self, kind: str, places: Array, dtype: np.dtype[Any], mask: Array | None
    ) -> tuple[Array, Array]:
        """Addresses and the lanes that count, of one dimension at least."""
        at = _whole(places, np.shape(np.atleast_1d(places))).view(np.uint64)
        if mask is None:
            lanes = np.ones(at.shape, dtype=bool)
            live = at.reshape(-1)
        else:
            lanes = _whole(mask, at.shape)
            live = at[lanes]
        if (self.is_cuda or kind == "atomic") and (live & np.uint64(dtype.itemsize - 1)).any():
            raise Outside(UNALIGNED.format(kind=kind, bytes=dtype.itemsize))
        if live.size:
            self._note(kind, live, dtype.itemsize)
        return at, lanes

    def _note(self, kind: str, live: Array, item_bytes: int) -> None:
        low, high = int(live.min()), int(live.max()) + item_bytes
        known = self._home(low, high)
        if known is not None:
            self._touch(kind, known, places_of(known.span.start, live, item_bytes), item_bytes)
            return
        rest = live
        for one in self._observation.allocations.values():
            inside = (rest >= one.span.start) & (rest <= max(one.span.end - item_bytes, 0))
            if inside.any():
                self._touch(kind, one, places_of(one.span.start, rest[inside], item_bytes), item_bytes)
                rest = rest[~inside]
        if rest.size:
            raise Outside(f"{kind} of {rest.size} elements outside every tensor")

    def _touch(self, kind: str, known: Allocation, places: Places, item_bytes: int) -> None:
        if self._later is not None:
            self._later.note(kind, known, places, item_bytes)
            if kind == "store":
                return
        if kind != "load":
            mark(known.writes, places, item_bytes)
        if known.past is None:
            return
        if kind != "store":
            self._observation.read_past = max(self._observation.read_past, known.past.level)
        if known.past.meets(kind, places, item_bytes):
            raise Outside(LEFT.format("memory"))

    def _home(self, low: int, high: int) -> Allocation | None:
        last = self._last
        if last is not None and last.span.start <= low and high <= last.span.end:
            return last
        for known in self._observation.allocations.values():
            if known.span.start <= low and high <= known.span.end:
                self._last = known
                return known
        return None


def _stretched(places: Array, *others: Array) -> Array:
    """Places for all programs, where any of the others differs among them."""
    shape = np.broadcast_shapes(np.shape(places), *map(np.shape, others))
    return places if np.shape(places) == shape else np.broadcast_to(places, shape)


def _whole(values: Array, shape: tuple[int, ...]) -> Array:
    """An array that may be written to, for the interpreter's native code takes no other."""
    if type(values) is np.ndarray and values.shape == shape:
        flags = values.flags
        if flags.c_contiguous and flags.writeable:
            return values
    made = np.empty(shape, dtype=np.asarray(values).dtype)
    made[...] = values
    return made
