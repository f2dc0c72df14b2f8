"""What kernels did to memory: allocations they may touch, bytes they asked for, accesses that missed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from harness.worker.kit.arena import span_bytes

from .allocations import Allocation, Span
from .candidate_lines import candidate_line
from .lanes import Access
from .places import Addresses, Places, counted, indices_told, mark, places_of
from .races import Races

Mask = NDArray[np.bool_]

MAX_REPORTS = 8
MOST_LOOKS = 1 << 9
"""Looks at single values, with nothing stored between them, after which a program counts as one that waits for another."""


class Waits(Exception):
    """A program waits for a program that runs later, because programs run from the last to the first."""


class LaunchRecord(NamedTuple):
    """One launch of one kernel."""

    kernel: str
    grid: tuple[int, int, int]
    programs: int
    function: Any = None
    """The kernel's Python function, undecorated."""
    arguments: Mapping[str, Any] = {}
    """As the candidate gave them, by the kernel's parameters; launch options are among them."""
    options: Mapping[str, Any] = {}
    """Keywords alone: what is given to a parameter by its place is no option, whatever its name."""


@dataclass(slots=True)
class Origin:
    """The tensor that a pointer was made from."""

    allocation: Allocation
    pointer: int
    names: tuple[str, ...]
    """Parameters of the kernel that hold it."""
    storage: int
    """Address of the storage: the allocation's key."""


@dataclass(slots=True)
class Observation:
    """
    What the kernels of one call of an entry point did. Bytes are exact, not what a cache lets through.

    Keeps alive every tensor that was passed to a kernel, so that addresses stay unambiguous: let it go when it is read.
    """

    launches: list[LaunchRecord] = field(default_factory=list)
    requested_read_bytes: int = 0
    requested_write_bytes: int = 0
    dot_flops: int = 0
    missed_stores: list[str] = field(default_factory=list)
    """The first few stores and atomics outside their tensor, one line each; they were kept from memory."""
    missed_loads: list[str] = field(default_factory=list)
    """Likewise loads; their lanes got a value that shows where it is used."""
    uninitialised: list[str] = field(default_factory=list)
    """The first few reads of fresh memory that no kernel, fill or copy had written, one line each."""
    position: tuple[int, int, int] = (0, 0, 0)
    """Of the program that runs, in its grid."""
    masked: bool = True
    """Whether the access that runs has a mask."""
    backwards: bool = False
    """The programs of each launch run from the last to the first."""
    waits: bool = False
    """A program waited for another one that runs later (`Waits`)."""
    race_finder: Races | None = None
    """Looks for accesses whose outcome depends on who comes first; `None` where nobody asks."""
    races: list[str] = field(default_factory=list)
    """The first such access, in a line."""
    false_promises: list[str] = field(default_factory=list)
    """The first divisor that a kernel told a compiler of and that does not hold, in a line."""
    undefined_lanes: dict[int, None] = field(default_factory=dict)
    """Lines of masked loads without `other`, which left lanes undefined."""
    launching: bool = False
    """Whether a launch is under way: what torch does meanwhile is the interpreter's, not the candidate's."""
    unsupported: str | None = None
    """Why the interpreter cannot say anything of this candidate; it wins over any exception that followed."""
    unfinished: str = ""
    """What of the call's work still ran when it returned, in words."""
    allocations: dict[int, Allocation] = field(default_factory=dict)
    """By the address of the storage."""
    on_launch: Callable[[LaunchRecord], None] | None = None
    """Told of each launch before its first program runs."""
    _looks: int = 0
    _reported: set[tuple[str, int, str]] = field(default_factory=set)
    _read_unwritten: set[tuple[str, int, str]] = field(default_factory=set)
    _fresh: dict[int, tuple[object, NDArray[np.uint8]]] = field(default_factory=dict)
    """Storages that held nothing when they were made, by address, and which of their bytes the host filled since."""

    @property
    def unique_read_bytes(self) -> int:
        """Distinct bytes read."""
        return sum(int(np.count_nonzero(known.reads)) for known in self.allocations.values())

    @property
    def unique_write_bytes(self) -> int:
        """Distinct bytes written."""
        return sum(int(np.count_nonzero(known.writes)) for known in self.allocations.values())

    def begin_program(self, position: tuple[int, int, int]) -> None:
        """A program of the launch begins."""
        self.position = position
        self._looks = 0
        if self.race_finder is not None:
            self.race_finder.begin_program()

    def launch(self, record: LaunchRecord) -> None:
        """Note a launch whose programs are about to run."""
        self.launches.append(record)
        if self.race_finder is not None:
            self.race_finder.begin_launch(lockstep=record.options.get("num_warps") == 1)
        for known in self.allocations.values():
            known.begin_launch()
        if self.on_launch is not None:
            self.on_launch(record)

    def note_race(self, line: str) -> None:
        """An access, told of in a line, has an outcome that depends on who comes first; an empty line is none."""
        if line and not self.races:
            self.races.append(line)

    def note_false_promise(self, what: str) -> None:
        """A value is not what the kernel's author told a compiler."""
        if not self.false_promises:
            self.false_promises.append(self._told(what))

    def note_undefined_lanes(self) -> None:
        """A masked load got no `other` for lanes that its mask leaves out."""
        _, line = candidate_line()
        self.undefined_lanes.setdefault(line)

    def _told(self, what: str) -> str:
        _, line = candidate_line()
        return f"line {line}, program {self.position}: {what}"

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel stored into the tensor's memory."""
        known = self.allocations.get(tensor.untyped_storage().data_ptr())
        if known is None:
            return False
        span = extent(tensor)
        first, last = span.start - known.span.start, span.end - known.span.start
        return bool(known.writes[max(first, 0) : max(last, 0)].any())

    def admit(self, inputs: Mapping[str, Any]) -> None:
        """Let kernels touch these tensors and nothing else of their storages, which may hold guard zones."""
        spans: dict[int, list[Span]] = {}
        storages: dict[int, object] = {}
        for tensor in inputs.values():
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            spans.setdefault(storage.data_ptr(), []).append(extent(tensor))
            storages[storage.data_ptr()] = storage
        for address, parts in spans.items():
            whole = Span(min(part.start for part in parts), max(part.end for part in parts))
            self._add(address, whole, storages[address])

    def fresh(self, tensor: torch.Tensor) -> None:
        """Its storage was made just now and holds nothing that a kernel may rely on."""
        storage = tensor.untyped_storage()
        if storage.nbytes():
            self._fresh[storage.data_ptr()] = storage, np.zeros(storage.nbytes(), dtype=np.uint8)

    def filled(self, tensor: torch.Tensor) -> None:
        """The host wrote this tensor's elements; what lies between them counts as written too."""
        storage = tensor.untyped_storage()
        known = self._fresh.get(storage.data_ptr())
        if known is not None and not self.launching:
            first = tensor.data_ptr() - storage.data_ptr()
            known[1][first : first + span_bytes(tensor)] = 1

    def origin(self, tensor: torch.Tensor, names: Iterable[str] = ()) -> Origin:
        """The origin of a pointer to this tensor, whose storage kernels may touch from now on."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if address not in self.allocations:
            self._add(address, Span(address, address + storage.nbytes()), storage)
        return Origin(self.allocations[address], tensor.data_ptr(), tuple(names), address)

    def touch(
        self, kind: str, addresses: Addresses, mask: Mask | None, item_bytes: int, origin: Origin | None
    ) -> Mask | None:
        """
        Count one access of `kind` (`load`, `store` or `atomic`), a lane an address.

        Returns the mask without the lanes that miss their tensor, or `None` where no lane missed.
        """
        flat = addresses.ravel()
        active = None
        if mask is not None:
            wide = mask if mask.shape == addresses.shape else np.broadcast_to(mask, addresses.shape)
            active = wide.ravel()
        live = flat if active is None or active.all() else flat[active]
        if live.size == 0:
            return None
        requested = live.size * item_bytes
        self._look_for_waiting(kind, live.size)
        if kind != "store":
            self.requested_read_bytes += requested
        if kind != "load":
            self.requested_write_bytes += requested
        low, high = int(live.min()), int(live.max()) + item_bytes
        home = self._home(low, high, origin)
        if home is None and origin is None:
            self._discover()
            home = self._home(low, high, origin)
        if home is not None:
            places = places_of(home.span.start, live, item_bytes)
            if kind != "store":
                self._look_for_unwritten(kind, home, places, item_bytes, origin)
            if self.race_finder is not None:
                access = Access(home, live, addresses, active, item_bytes, (low, high))
                self._look_for_races(self.race_finder, kind, access, origin)
            _mark(home, kind, places, item_bytes)
            return None
        return self._part(kind, addresses, active, item_bytes, origin).reshape(addresses.shape)

    def _look_for_waiting(self, kind: str, lanes: int) -> None:
        """Raises `Waits` where a program that runs before its predecessors waits for one of them."""
        self._looks = self._looks + 1 if kind != "store" and lanes == 1 else 0
        if self.backwards and self._looks > MOST_LOOKS:
            self.waits = True
            raise Waits

    def _look_for_races(self, finder: Races, kind: str, access: Access, origin: Origin | None) -> None:
        race = finder.look_at(kind, access)
        if race:
            self.note_race(self._told(race.format(_named(origin))))

    def _add(self, address: int, span: Span, holder: object) -> None:
        size = span.end - span.start
        known = self._fresh.get(address)
        self.allocations[address] = Allocation(
            span,
            holder,
            np.zeros(size, dtype=np.uint8),
            np.zeros(size, dtype=np.uint8),
            known[1] if known is not None and known[1].size == size else None,
        )

    def _discover(self) -> None:
        """Admit every live tensor: kernels may be given addresses as integers, which no launch argument names."""
        for found in gc.get_objects():
            # By type: `isinstance` would ask proxies for their class, and some answer with a warning.
            if issubclass(type(found), torch.Tensor) and found.layout is torch.strided and found.numel() > 0:
                self.origin(found)

    def _home(self, low: int, high: int, origin: Origin | None) -> Allocation | None:
        """The allocation that holds all of `low` to `high`."""
        if origin is not None:
            known = origin.allocation
            return known if known.span.start <= low and high <= known.span.end else None
        for known in self.allocations.values():
            if known.span.start <= low and high <= known.span.end:
                return known
        return None

    def _part(
        self, kind: str, addresses: Addresses, active: Mask | None, item_bytes: int, origin: Origin | None
    ) -> Mask:
        """The same allocation by allocation, of an access that no one holds all of; the mask of the lanes that hit."""
        flat = addresses.ravel()
        candidates = [origin.allocation] if origin is not None else list(self.allocations.values())
        wanted = np.ones(flat.shape, dtype=bool) if active is None else active
        good = np.zeros(flat.shape, dtype=bool)
        for known in candidates:
            start, end = np.uint64(known.span.start), max(known.span.end - item_bytes, 0)
            inside = wanted & (flat >= start) & (flat <= np.uint64(end))
            if inside.any() and known.span.end - known.span.start >= item_bytes:
                live = flat[inside]
                places = places_of(known.span.start, live, item_bytes)
                if kind != "store":
                    self._look_for_unwritten(kind, known, places, item_bytes, origin)
                if self.race_finder is not None:
                    access = Access(known, live, addresses, inside, item_bytes)
                    self._look_for_races(self.race_finder, kind, access, origin)
                _mark(known, kind, places, item_bytes)
                good |= inside
        missed = wanted & ~good
        if missed.any():
            self._report(kind, flat[missed], item_bytes, origin)
        return good

    def _look_for_unwritten(
        self, kind: str, home: Allocation, places: Places, item_bytes: int, origin: Origin | None
    ) -> None:
        """Note lanes that read what neither the host nor a kernel wrote."""
        if home.filled is None or len(self.uninitialised) >= MAX_REPORTS:
            return
        first = np.arange(places.start, places.stop, places.step) if isinstance(places, slice) else places
        written = np.ones(first.shape, dtype=bool)
        for byte in {0, item_bytes - 1}:
            written &= (home.filled[first + byte] | home.writes[first + byte]).astype(bool)
        if written.all():
            return
        file, line = candidate_line()
        name = _named(origin)
        if (file, line, name) in self._read_unwritten:
            return
        self._read_unwritten.add((file, line, name))
        start = origin.pointer if origin is not None else home.span.start
        missing = (first[~written] + home.span.start - start) // item_bytes
        self.uninitialised.append(
            f"{file} line {line}: {kind} of {counted(missing.size)} of {name} that nothing had written "
            f"({indices_told(missing)}) in program {self.position}"
        )

    def _report(self, kind: str, missed: Addresses, item_bytes: int, origin: Origin | None) -> None:
        file, line = candidate_line()
        name = _named(origin)
        reports = self.missed_loads if kind == "load" else self.missed_stores
        if (file, line, f"{kind} {name}") in self._reported or len(reports) >= MAX_REPORTS:
            return
        self._reported.add((file, line, f"{kind} {name}"))
        if origin is None:
            what = f"outside every tensor (address {int(missed[0]):#x})"
        else:
            known = origin.allocation
            size = (known.span.end - origin.pointer) // item_bytes
            before = int(missed[0]) < known.span.start
            indices = (missed.astype(np.int64) - origin.pointer) // item_bytes
            # A pointer before its tensor wraps around as an unsigned address; indices are signed.
            what = f"{'before the start' if before else 'past the end'} of {name} ({indices_told(indices)}, size {size})"
        how = "narrow its mask" if self.masked else "it has no mask"
        reports.append(
            f"{file} line {line}: {kind} of {counted(missed.size)} {what} in program {self.position}; {how}"
        )


def _mark(allocation: Allocation, kind: str, places: Places, item_bytes: int) -> None:
    if kind != "store":
        mark(allocation.reads, places, item_bytes)
    if kind != "load":
        mark(allocation.writes, places, item_bytes)


def _named(origin: Origin | None) -> str:
    """The parameters that hold the tensor."""
    names = origin.names if origin is not None else ()
    return " or ".join(f"`{name}`" for name in names) or "its tensor"


def extent(tensor: torch.Tensor) -> Span:
    """The addresses from a tensor's first element to its last, whatever its strides."""
    start = tensor.data_ptr()
    return Span(start, start + span_bytes(tensor))
