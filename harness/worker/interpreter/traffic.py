"""Notes what kernels do to memory: the allocations they may touch, the bytes they request, the accesses that miss."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from harness.wire.results.evaluation import Finding, Traffic, line_in
from harness.worker.kit.arena import AddressSpan, extent, span_in_storage
from harness.worker.kit.poison import Poison
from harness.worker.triton_hooks.autotuning import is_static

from .known_memory import KnownMemory
from .places import (
    Addresses,
    Allocation,
    Places,
    PointerOrigin,
    candidate_line,
    elements_text,
    indices_text,
    mark,
    places_of,
)

Mask = NDArray[np.bool_]

MAX_REPORTS = 8
OVERWRITTEN = 2
_COUNTS = ("requested_read_bytes", "requested_write_bytes", "dot_flops")
MOST_LOOKS = 1 << 9
"""Reads of single values, without a store between them, after which a program counts as waiting for another program."""


class UnsupportedHere(Exception):
    """The interpreter cannot run this kernel correctly. Says nothing about the kernel."""


class WaitsForLater(Exception):
    """A program waits for a program that runs later, because programs run from the last to the first."""


class LaunchRecord(NamedTuple):
    """One launch of one kernel."""

    kernel: str
    grid: tuple[int, int, int]
    programs: int


@dataclass(slots=True)
class Observation:
    """The work of the kernels in one call of an entry point. Bytes are exact, not what a cache lets through.

    Keeps every tensor that was passed to a kernel alive, so that addresses stay unambiguous. Drop the observation after use.
    """

    launches: list[LaunchRecord] = field(default_factory=list)
    requested_read_bytes: int = 0
    requested_write_bytes: int = 0
    dot_flops: int = 0
    missed_stores: list[str] = field(default_factory=list)
    """The first stores and atomics outside their tensor, one line each; they did not reach memory."""
    missed_loads: list[str] = field(default_factory=list)
    """The first loads outside their tensor; their lanes got a value that shows where it is used."""
    uninitialised: list[str] = field(default_factory=list)
    """The first reads of fresh memory that no kernel, fill or copy had written, one line each."""
    position: tuple[int, int, int] = (0, 0, 0)
    """Place of the running program in its grid."""
    masked: bool = True
    """Whether the current access has a mask."""
    samples: bool = False
    """Kernels only compute addresses and masks: loads return made-up values and stores do nothing. See `FullSizeObservation`."""
    order: int = 0
    """Order in which the programs of each launch run: 0 from the first, 1 from the last, else a shuffled one of this number."""
    waits: bool = False
    """A program waited for a program that runs later (`WaitsForLater`)."""
    false_promises: list[str] = field(default_factory=list)
    """The first divisor in a kernel's hint that does not hold, in one line."""
    undefined_lanes: dict[int, None] = field(default_factory=dict)
    """Lines of masked loads without `other`, which left lanes undefined."""
    zero_lanes: bool = False
    """These lanes hold 0, as without an observation."""
    outside: Poison | None = None
    """Content of the lanes of a load that miss their tensor; `None`: the same as of masked-out lanes."""
    launching: bool = False
    """A launch is running: operations of torch are the interpreter's, not the candidate's."""
    unsupported: str | None = None
    """Why the interpreter cannot judge this candidate. Takes precedence over any later exception."""
    unfinished: str = ""
    """Which work of the call was still running when it returned, in words."""
    allocations: dict[int, Allocation] = field(default_factory=dict)
    """Allocations by address of the storage."""
    known: KnownMemory | None = None
    """`None`: what wrote the memory is not followed."""
    unwatched: str = ""
    """The first use of bytes that no watched work wrote, in one line."""
    race: str = ""
    """The first load of an element that another program of the launch had stored, in one line."""
    synchronizes: bool = False
    """The running program used an atomic or a volatile load: it may wait for other programs, so their stores are no race."""
    _program: int = 0
    """Number of the running program in its launch, from 1."""
    _looks: int = 0
    _reported: set[tuple[str, int, str]] = field(default_factory=set)
    _fresh: dict[int, tuple[object, NDArray[np.uint8]]] = field(default_factory=dict)
    """Storages that were made empty, by address, and which of their bytes the host has filled since."""

    @property
    def unique_read_bytes(self) -> int:
        """Distinct bytes read."""
        return sum(int(np.count_nonzero(allocation.reads)) for allocation in self.allocations.values())

    @property
    def unique_write_bytes(self) -> int:
        """Distinct bytes written."""
        return sum(int(np.count_nonzero(allocation.writes)) for allocation in self.allocations.values())

    def traffic(self, case: str) -> Traffic:
        """Return what the kernels of this call requested, touched, computed and launched, as counts for a case."""
        return Traffic(
            case=case,
            requested_read_bytes=self.requested_read_bytes,
            requested_write_bytes=self.requested_write_bytes,
            unique_read_bytes=self.unique_read_bytes,
            unique_write_bytes=self.unique_write_bytes,
            dot_flops=self.dot_flops,
            launches=len(self.launches),
            programs=sum(launch.programs for launch in self.launches),
        )

    def findings(self, case: str) -> tuple[Finding, ...]:
        """The findings in this call."""
        return tuple(
            Finding(kind=kind, message=message, case=case, line=line_in(message))
            for kind, messages in (
                ("out_of_bounds", self.missed_loads),
                ("false_promise", self.false_promises),
                ("uninitialised", self.uninitialised),
            )
            for message in messages
        )

    @contextmanager
    def counting(self, *, trial: bool) -> Iterator[None]:
        """Do not count the work of launches in the block if it is done again, or if the kernel does not compile on a device."""
        launches = len(self.launches)
        counts = {name: getattr(self, name) for name in _COUNTS}
        try:
            yield
        except Exception as error:
            trial = trial or is_static(error)
            raise
        finally:
            if trial:
                del self.launches[launches:]
                for name, count in counts.items():
                    setattr(self, name, count)

    def begin_program(self, position: tuple[int, int, int]) -> None:
        """Begin a program of the launch."""
        self.position = position
        self._looks = 0
        self._program += 1
        self.synchronizes = False

    def note_false_promise(self, text: str) -> None:
        """Note a hint to the compiler that does not hold."""
        if not self.false_promises:
            self.false_promises.append(self._located(text))

    def _located(self, text: str) -> str:
        _, line = candidate_line()
        return f"line {line}, program {self.position}: {text}"

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel stored into the tensor's memory."""
        return bool(self._notes("writes", tensor).any())

    def stored(self, storage: torch.UntypedStorage) -> NDArray[np.uint8]:
        """1 for each byte of the storage that a kernel stored, and that the host did not overwrite since."""
        stored = np.zeros(storage.nbytes(), dtype=np.uint8)
        allocation = self.allocations.get(storage.data_ptr())
        if allocation is not None:
            first = allocation.span.start - storage.data_ptr()
            part = stored[first : first + allocation.writes.size]  # a resized storage may be smaller
            part[:] = allocation.writes[: part.size] == 1
        return stored

    def overwrite(self, tensor: torch.Tensor) -> None:
        """Note that the host copies to this tensor, gaps between its elements included."""
        writes = self._notes("writes", tensor)
        writes[writes == 1] = OVERWRITTEN

    def read_bytes(self, tensor: torch.Tensor) -> int:
        """Distinct bytes of the tensor's memory that kernels read."""
        return int(np.count_nonzero(self._notes("reads", tensor)))

    def _notes(self, name: str, tensor: torch.Tensor) -> NDArray[np.uint8]:
        """A view of the `reads` or `writes` of the tensor's bytes, gaps included; empty if kernels never got its storage."""
        allocation = self.allocations.get(tensor.untyped_storage().data_ptr())
        if allocation is None:
            return np.empty(0, dtype=np.uint8)
        span, start = extent(tensor), allocation.span.start
        notes: NDArray[np.uint8] = getattr(allocation, name)
        return notes[max(span.start - start, 0) : max(span.end - start, 0)]

    def admit(self, inputs: Mapping[str, Any]) -> None:
        """Let kernels touch these tensors and nothing else of their storages, which may hold guard zones."""
        spans: dict[int, list[AddressSpan]] = {}
        storages: dict[int, torch.UntypedStorage] = {}
        for tensor in inputs.values():
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            spans.setdefault(storage.data_ptr(), []).append(extent(tensor))
            storages[storage.data_ptr()] = storage
        for address, parts in spans.items():
            whole = AddressSpan(min(part.start for part in parts), max(part.end for part in parts))
            self._add(address, whole, storages[address])
            self._remember(storages[address])

    def fresh(self, tensor: torch.Tensor) -> None:
        """Note that the tensor's storage was just made empty."""
        storage = tensor.untyped_storage()
        if storage.nbytes():
            self._fresh[storage.data_ptr()] = storage, np.zeros(storage.nbytes(), dtype=np.uint8)
            self._remember(storage)

    def filled(self, tensor: torch.Tensor) -> None:
        """Note that the host wrote this tensor's elements; bytes between them count as written too."""
        storage, span = tensor.untyped_storage(), span_in_storage(tensor)
        self._remember(storage, span)
        fresh = self._fresh.get(storage.data_ptr())
        if fresh is not None and not self.launching:
            fresh[1][span] = 1

    def origin(self, tensor: torch.Tensor, names: Iterable[str] = ()) -> PointerOrigin:
        """The origin of a pointer to this tensor; kernels may touch its storage from now on."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self.allocations:
            self._add(address, AddressSpan(address, address + storage.nbytes()), storage)
        return PointerOrigin(self.allocations[address], tensor.data_ptr(), tuple(names))

    @contextmanager
    def following_stores(self) -> Iterator[None]:
        """A launch runs in the block: compare the memory before it with `known`, and remember the stores after it."""
        self._program = 0
        for allocation in self.allocations.values():
            allocation.storers = None
            allocation.watched = self._watched(allocation.holder)
        try:
            yield
        finally:
            if self.known is not None:
                for allocation in self.allocations.values():
                    self.known.remember_stores(allocation.holder, allocation.watched)

    def check_read(self, tensor: torch.Tensor, reader: str) -> None:
        """Note in `unwatched` that `reader` gets bytes of the tensor that no watched work wrote."""
        watched = None if self.unwatched else self._watched(tensor.untyped_storage())
        if watched is not None and not watched[span_in_storage(tensor)].all():
            self.unwatched = f"{reader} reads bytes"

    def _watched(self, storage: torch.UntypedStorage) -> NDArray[np.uint8] | None:
        return None if self.known is None else self.known.watched(storage)

    def _remember(self, storage: torch.UntypedStorage, span: slice = slice(None)) -> None:
        if self.known is not None:
            self.known.remember(storage, span)

    def make_up(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """If `samples`: the values that a load or a computation of a kernel returns instead of its own."""
        raise NotImplementedError

    def touch(
        self,
        kind: str,
        addresses: Addresses,
        mask: Mask | None,
        item_bytes: int,
        origin: PointerOrigin | None,
    ) -> Mask | None:
        """Count an access of `kind`, one address a lane. Returns the mask without lanes that miss; `None` if no lane misses."""
        flat = addresses.ravel()
        active = None
        if mask is not None:
            wide = mask if mask.shape == addresses.shape else np.broadcast_to(mask, addresses.shape)
            active = wide.ravel()
        live = flat if active is None or active.all() else flat[active]
        if live.size == 0:
            return None
        self._look_for_waiting(kind, live.size)
        if kind != "store":
            self.requested_read_bytes += live.size * item_bytes
        if kind != "load":
            self.requested_write_bytes += live.size * item_bytes
        low, high = int(live.min()), int(live.max()) + item_bytes
        home = self._home(low, high, origin)
        if home is None and origin is None:
            self._discover()
            home = self._home(low, high, origin)
        if home is not None:
            self._inside(kind, home, live, item_bytes, origin)
            return None
        return self._split(kind, addresses, active, item_bytes, origin).reshape(addresses.shape)

    def _look_for_waiting(self, kind: str, lanes: int) -> None:
        """Raise `WaitsForLater` if a program waits for a program before it, while programs do not run in order."""
        self._looks = self._looks + 1 if kind != "store" and lanes == 1 else 0
        if self.order and self._looks > MOST_LOOKS:
            self.waits = True
            raise WaitsForLater

    def _inside(
        self, kind: str, home: Allocation, live: Addresses, item_bytes: int, origin: PointerOrigin | None
    ) -> None:
        """Note an access with all active lanes, at addresses `live`, in one allocation."""
        places = places_of(home.span.start, live, item_bytes)
        if kind != "store":
            self._look_for_unwritten(kind, home, places, item_bytes, origin)
            self._look_for_unwatched(kind, home, live, item_bytes, origin)
            mark(home.reads, places, item_bytes)
        if kind == "atomic":
            self.synchronizes = True
        elif kind == "load":
            self._look_for_race(home, places, item_bytes, origin)
        else:
            if home.storers is None:
                home.storers = np.zeros(home.writes.size, dtype=np.int32)
            home.storers[places] = self._program
        if kind != "load":
            mark(home.writes, places, item_bytes)
            if home.watched is not None:
                mark(home.watched, places_of(home.holder.data_ptr(), live, item_bytes), item_bytes)

    def _look_for_race(
        self, home: Allocation, places: Places, item_bytes: int, origin: PointerOrigin | None
    ) -> None:
        """Note in `race` that a load reads an element that another program of the launch stored before."""
        if home.storers is None or self.race or self.synchronizes:
            return
        storers = home.storers[places]
        of_another = (storers != 0) & (storers != self._program)
        if of_another.any():
            indices = _indices(home, _bytes_at(places)[of_another], item_bytes, origin)
            self.race = self._located(
                f"a load of {_name(origin)} ({indices}) reads what another program of the launch stored"
            )

    def _look_for_unwatched(
        self, kind: str, home: Allocation, live: Addresses, item_bytes: int, origin: PointerOrigin | None
    ) -> None:
        """Note in `unwatched` that an access reads bytes that no watched work wrote."""
        if home.watched is None or self.unwatched:
            return
        first = live.view(np.int64) - home.holder.data_ptr()
        if not all(home.watched[first + byte].all() for byte in range(item_bytes)):
            self.unwatched = self._located(f"a {kind} of {_name(origin)} reads bytes")

    def _add(self, address: int, span: AddressSpan, holder: torch.UntypedStorage) -> None:
        """Let kernels touch an allocation: count its bytes from now on. `holder` keeps its memory alive."""
        size = span.end - span.start
        fresh = self._fresh.get(address)
        filled = fresh[1] if fresh is not None and fresh[1].size == size else None
        reads, writes = np.zeros((2, size), dtype=np.uint8)
        self.allocations[address] = Allocation(span, holder, reads, writes, filled, self._watched(holder))

    def _discover(self) -> None:
        """Admit every live tensor: a kernel may get addresses as integers, which no launch argument names."""
        for thing in gc.get_objects():
            # By type: `isinstance` would ask proxies for their class, and some answer with a warning.
            if issubclass(type(thing), torch.Tensor) and thing.layout is torch.strided and thing.numel() > 0:
                self.origin(thing)

    def _home(self, low: int, high: int, origin: PointerOrigin | None) -> Allocation | None:
        """The allocation that contains all addresses from `low` to `high`."""
        for allocation in self.allocations.values() if origin is None else (origin.allocation,):
            if allocation.span.start <= low and high <= allocation.span.end:
                return allocation
        return None

    def _split(
        self,
        kind: str,
        addresses: Addresses,
        active: Mask | None,
        item_bytes: int,
        origin: PointerOrigin | None,
    ) -> Mask:
        """Note an access that no allocation contains, one allocation after the other. Returns the mask of the lanes that hit."""
        flat = addresses.ravel()
        wanted = np.ones(flat.shape, dtype=bool) if active is None else active
        good = np.zeros(flat.shape, dtype=bool)
        for home in list(self.allocations.values()) if origin is None else (origin.allocation,):
            start, end = np.uint64(home.span.start), max(home.span.end - item_bytes, 0)
            inside = wanted & (flat >= start) & (flat <= np.uint64(end))
            if inside.any() and home.span.end - home.span.start >= item_bytes:
                self._inside(kind, home, flat[inside], item_bytes, origin)
                good |= inside
        missed = wanted & ~good
        if missed.any():
            self._report(kind, flat[missed], item_bytes, origin)
        return good

    def _look_for_unwritten(
        self, kind: str, home: Allocation, places: Places, item_bytes: int, origin: PointerOrigin | None
    ) -> None:
        """Note that lanes read bytes which neither the host nor a kernel wrote, in one line; at most `MAX_REPORTS` lines.

        `places` are those of the lanes in the allocation `home`. The first and the last byte of each element are looked at.
        """
        if home.filled is None or len(self.uninitialised) >= MAX_REPORTS:
            return
        first = _bytes_at(places)
        written = np.ones(first.shape, dtype=bool)
        for byte in {0, item_bytes - 1}:
            written &= (home.filled[first + byte] | home.writes[first + byte]).astype(bool)
        if written.all():
            return
        name = _name(origin)
        line = self._new_line(f"unwritten {name}")
        if line:
            missing = first[~written]
            self.uninitialised.append(
                f"{line}: {kind} of {elements_text(missing.size)} of {name} that nothing had written "
                f"({_indices(home, missing, item_bytes, origin)}) in program {self.position}"
            )

    def _report(self, kind: str, missed: Addresses, item_bytes: int, origin: PointerOrigin | None) -> None:
        """Note in one line an access that missed its tensor: where, and in which program. At most `MAX_REPORTS` are noted.

        `missed` are the addresses; `origin` is the tensor of the pointer, `None` if the pointer belongs to none.
        """
        reports = self.missed_loads if kind == "load" else self.missed_stores
        name = _name(origin)
        line = self._new_line(f"{kind} {name}") if len(reports) < MAX_REPORTS else ""
        if not line:
            return
        if origin is None:
            where = f"outside every tensor (address {int(missed[0]):#x})"
        else:
            span = origin.allocation.span
            size = (span.end - origin.pointer) // item_bytes
            side = "before the start" if int(missed[0]) < span.start else "past the end"
            # A pointer before its tensor wraps around as an unsigned address; indices are signed.
            indices = (missed.astype(np.int64) - origin.pointer) // item_bytes
            where = f"{side} of {name} ({indices_text(indices)}, size {size})"
        remedy = "narrow its mask" if self.masked else "it has no mask"
        count = elements_text(missed.size)
        reports.append(f"{line}: {kind} of {count} {where} in program {self.position}; {remedy}")

    def _new_line(self, subject: str) -> str:
        """The candidate's current file and line in words; empty if the subject was reported for this line before."""
        file, line = candidate_line()
        key = file, line, subject
        if key in self._reported:
            return ""
        self._reported.add(key)
        return f"{file} line {line}"


def _bytes_at(places: Places) -> NDArray[np.int64]:
    return np.arange(places.start, places.stop, places.step) if isinstance(places, slice) else places


def _indices(
    home: Allocation, first: NDArray[np.int64], item_bytes: int, origin: PointerOrigin | None
) -> str:
    """The indices of elements, counted from the tensor's first, by their first bytes in an allocation; in words."""
    start = origin.pointer if origin is not None else home.span.start
    return indices_text((first + home.span.start - start) // item_bytes)


def _name(origin: PointerOrigin | None) -> str:
    """The parameters that hold the tensor."""
    names = origin.names if origin is not None else ()
    return " or ".join(f"`{name}`" for name in names) or "its tensor"


Watching = TypeVar("Watching", bound=Observation)
_running: list[Observation] = []


@contextmanager
def observe(
    inputs: Mapping[str, Any], *, zero_lanes: bool = False, known: KnownMemory | None = None
) -> Iterator[Observation]:
    """Count what kernels do until the block ends.

    Of each tensor in `inputs`, kernels may touch only its own elements, not the rest of its storage. `zero_lanes`, `known`: see
    `Observation`. Exceptions of the candidate pass through; check `unsupported` before them.
    """
    observation = Observation(zero_lanes=zero_lanes, known=known)
    observation.admit(inputs)
    with running(observation):
        yield observation


@contextmanager
def running(observation: Watching) -> Iterator[Watching]:
    """Make this the current observation until the block ends."""
    _running.append(observation)
    try:
        yield observation
    finally:
        _running.remove(observation)


def current() -> Observation | None:
    """The current observation; `None` outside of `running`, where nothing is counted."""
    return _running[-1] if _running else None


def cannot(why: str) -> UnsupportedHere:
    """Note in the current observation that the interpreter cannot judge this, and return the error to raise."""
    observation = current()
    if observation is not None and observation.unsupported is None:
        observation.unsupported = why
    return UnsupportedHere(why)


def refusing(operation: str) -> Callable[..., Any]:
    """A function that raises `UnsupportedHere` at any call, because the interpreter lacks the operation."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise cannot(f"Triton's interpreter has no {operation}, so this device cannot judge it")

    return refuse
