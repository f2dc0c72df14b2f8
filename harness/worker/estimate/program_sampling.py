# ruff: noqa: ARG001, ARG005 -- stands in for the interpreter's methods, whose arguments are theirs
"""
Runs a few programs of each launch at `gpu` sizes and counts what they ask memory for, without touching it.

Loads answer with made-up values and stores go nowhere, so only addresses and masks are computed. Some programs run
once more with other values: where they then ask for other bytes, what the kernel does depends on its data and a sample
says nothing. Nor does it where the CPU seconds of a sample are spent. Touches the internals of Triton's interpreter (3.6 and 3.7); for a process that does nothing else.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.wire.sample_messages import Flow
from harness.worker.interpreter import programs as interpreted
from harness.worker.interpreter.allocations import Allocation, Span
from harness.worker.interpreter.candidate_lines import candidate_line
from harness.worker.interpreter.observing import cannot, current
from harness.worker.interpreter.traffic import MAX_REPORTS, Observation, Origin

from . import extrapolation, footprint
from .extrapolation import Access, Program, Touched
from .program_sample import Programs

LANES_AN_ACCESS = 1 << 14
"""An access of so many lanes costs about as much as the access itself."""
AFFORDABLE = 1600
"""Accesses that the sample of one launch should cost at most, lanes reckoned in; larger programs mean fewer of them."""
ENDLESS = 1 << 17
"""Accesses of one program, lanes reckoned in, beyond which it is not waited for."""
WAITING = 1024
"""The very same access so many times in a row is a program's that waits for what nobody here writes."""
CHECKED = 2
"""Programs that run again with other values."""
STEP, LOADS = 7, 16
"""Made-up values differ by so much from one load to the next; after so many loads they begin anew, so that they fit into 8 bits."""
MERGED = 256
"""Parts of a footprint that are kept before they are merged."""

_UNUSED = {
    "create_store": (1,),
    "create_masked_store": (1,),
    "create_dot": (0, 1, 2),
    "create_atomic_rmw": (2,),
    "create_atomic_cas": (1, 2),
}
"""Values, of which the stand-ins below ask the shape alone: nothing that only they depend on need be computed."""
_IDLE = frozenset({"ReduceOps", "ScanOps"})
"""Nobody looks here at who stored what, so that it does not matter where lanes meet."""

RunProgram = Callable[[tuple[int, int, int]], None]


class Sampler(Observation):
    """The observation of one call of an entry point at `gpu` sizes."""

    def __init__(self, dies: int) -> None:
        super().__init__()
        self.dies = dies
        self.flows: list[Flow] = []
        self.remarks: dict[str, None] = {}
        self.other_values = False
        self.loads = 0
        """Of the program that runs, so far."""
        self.falling = False
        """Whether later loads give smaller values than earlier ones, where values are `other_values`."""
        self.program = Program()
        self._cost = 0.0
        self._alike = 0
        self._misses: dict[tuple[str, int, str], str] = {}

    def touch(
        self, kind: str, addresses: Any, mask: Any | None, item_bytes: int, origin: Origin | None
    ) -> None:
        """Count one access; none is kept from memory, as none reaches it."""
        # Masks that operators combined may hold integers, by which numpy would index.
        active = None if mask is None else np.broadcast_to(np.asarray(mask, dtype=bool), addresses.shape)
        self._cost += 1 + addresses.size / LANES_AN_ACCESS
        if self._cost > ENDLESS:
            raise cannot("a program is too long to sample")
        if active is not None and active.all():
            active = None
        part = footprint.of_access(np.asarray(addresses, dtype=np.uint64), active, item_bytes)
        _, line = candidate_line()
        if part.starts.size == 0:
            self._note(Access(line, kind, 0, 0, 0))
            return
        requested = item_bytes * (addresses.size if active is None else int(np.count_nonzero(active)))
        reach = Span(int(part.starts.min()), int(part.ends.max()))
        home = self._home_of(reach, origin)
        known = self.program.touched.setdefault(home, Touched())
        if kind != "store":
            known.read_bytes += requested
        if kind != "load":
            known.write_bytes += requested
        known.parts.append(part)
        if len(known.parts) > MERGED:
            known.parts = [footprint.union(known.parts)]
        checksum = hash((part.starts.tobytes(), part.ends.tobytes()))
        self._note(Access(line, kind, requested, home, checksum))
        if origin is not None and not self.other_values:
            self._check_bounds(kind, line, reach, item_bytes, origin)

    def _note(self, access: Access) -> None:
        trail = self.program.trail
        alike = bool(trail) and trail[-1] == access and access.requested_bytes > 0
        self._alike = self._alike + 1 if alike else 1
        if self._alike >= WAITING:
            raise cannot(f"a program waits for a value that another one writes (line {access.line})")
        trail.append(access)

    @property
    def misses(self) -> tuple[str, ...]:
        """Accesses outside their tensor, one line each, of those whose addresses do not depend on values."""
        return tuple(self._misses.values())[:MAX_REPORTS]

    def run(self, grid: Programs, run_program: RunProgram) -> None:
        """Run the programs that stand for one launch, and add its flow; none of a case that is left out."""
        if self.unsupported is not None:
            raise cannot(self.unsupported)
        programs = {grid.middle: self._one(grid.middle, grid, run_program)}
        # The first one says what they cost: the same kernel at the same sizes always has the same sample.
        chosen = grid.sample(int(AFFORDABLE / max(self._cost, 1)))
        for number in chosen.all:
            if number not in programs:
                programs[number] = self._one(number, grid, run_program)
        again = list(programs)[:: max(len(programs) - 1, 1)][:CHECKED]
        loose = self._moved({number: programs[number] for number in again}, grid, run_program)
        sizes = {address: known.span.end - known.span.start for address, known in self.allocations.items()}
        self.flows.append(extrapolation.flow(grid, chosen, programs, sizes, loose))

    def _one(self, number: int, grid: Programs, run_program: RunProgram) -> Program:
        self.program, self._cost, self.loads = Program(), 0.0, 0
        run_program(grid.position(number))
        return self.program

    def _moved(
        self, programs: Mapping[int, Program], grid: Programs, run_program: RunProgram
    ) -> frozenset[int]:
        """
        Run them again with other values: the allocations that are then addressed elsewhere.

        Values rise from load to load in one program and fall in the other: the difference of two loaded values, as of the
        bounds of a row, is more than 0 in one of them.
        """
        loose: set[int] = set()
        self.other_values, self.falling = True, False
        try:
            for number, program in programs.items():
                before, after = program.trail, self._one(number, grid, run_program).trail
                self.falling = True
                pairs = list(zip(before, after, strict=False))
                differs = next((old for old, new in pairs if not old.asks_as(new)), None)
                if differs is not None or len(before) != len(after):
                    where = differs or (before or after)[-1]
                    raise cannot(
                        f"which bytes it asks for depends on values that it loads (line {where.line})"
                    )
                moved = {old.line: old.home for old, new in pairs if old.checksum != new.checksum}
                loose |= set(moved.values())
                for line in moved:
                    self.remarks[
                        f"line {line}: addresses depend on loaded values, so distinct bytes are bounds only"
                    ] = None
                for key in [key for key in self._misses if key[1] in moved]:
                    self.remarks[f"where what it loads is zero, {self._misses.pop(key)}"] = None
        finally:
            self.other_values = False
        return frozenset(loose)

    def _home_of(self, reach: Span, origin: Origin | None) -> int:
        if origin is not None:
            return origin.storage
        for address, known in self.allocations.items():
            if known.span.start <= reach.start and reach.end <= known.span.end:
                return address
        return 0

    def _check_bounds(self, kind: str, line: int, reach: Span, item_bytes: int, origin: Origin) -> None:
        span = origin.allocation.span
        if span.start <= reach.start and reach.end <= span.end:
            return
        name = " or ".join(f"`{name}`" for name in origin.names) or "its tensor"
        if (kind, line, name) in self._misses:
            return
        past = reach.end > span.end
        index = ((reach.end - item_bytes if past else reach.start) - origin.pointer) // item_bytes
        size = (span.end - origin.pointer) // item_bytes
        side = "past the end" if past else "before the start"
        self._misses[kind, line, name] = (
            f"line {line}: {kind} {side} of {name} (index {index}, size {size}) in program {self.position}; "
            + ("narrow its mask" if self.masked else "it has no mask")
        )

    def _add(self, address: int, span: Span, holder: object) -> None:
        """Without maps of bytes, which would be as large as the tensors."""
        nothing = np.empty(0, dtype=np.uint8)
        self.allocations[address] = Allocation(span, holder, nothing, nothing)


def install() -> None:
    """Turn every launch of this process into a sample; once, after `interpreter.prepare`."""
    builder = interpreter.InterpreterBuilder

    def masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _touch("load", ptrs, mask)
        dtype = ptrs.get_element_ty()
        return TensorHandle(_made_up(ptrs.data.shape, interpreter._get_np_dtype(dtype)), dtype)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> None:
        _touch("store", ptrs, mask)

    def rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _touch("atomic", ptr, mask)
        return TensorHandle(_made_up(ptr.data.shape, val.data.dtype), val.dtype.scalar)

    def cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any, **named: Any) -> Any:
        _touch("atomic", ptr, None)
        return TensorHandle(_made_up(ptr.data.shape, val.data.dtype), cmp.dtype.scalar)

    def dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        _sampler().program.dot_flops += 2 * int(d.data.size) * int(a.data.shape[-1])
        return TensorHandle(_made_up(d.data.shape, d.data.dtype), d.dtype)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot = rmw, cas, dot
    builder.create_print = lambda *args, **named: None
    # Each sum would be worked out once more to look for overflow, a sixth of all the time.
    own = interpreter.interpreter_builder
    own.options = dataclasses.replace(own.options, sanitize_overflow=False)
    interpreter.GridExecutor.__call__ = _launch


def _launch(self: Any, *given: Any, **named: Any) -> None:
    """As the interpreter launches, for the programs of the sample."""
    with interpreted.launched(self, given, named) as (arguments, grid):
        if math.prod(grid) > 0:
            sampler = _sampler()
            run = interpreted.Programs(self.fn, arguments, several=True, unused=_UNUSED, idle=_IDLE).run
            sampler.run(Programs(grid, sampler.dies), run)


def _sampler() -> Sampler:
    sampler = current()
    if not isinstance(sampler, Sampler):
        raise cannot("a kernel was launched outside the entry point")
    return sampler


def _touch(kind: str, ptrs: Any, mask: Any) -> None:
    bits = mask if mask is None or isinstance(mask, np.ndarray) else mask.data
    item_bytes = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
    _sampler().touch(kind, ptrs.data, bits, item_bytes, getattr(ptrs, "origin", None))


def _made_up(shape: tuple[int, ...], dtype: Any) -> Any:
    """Zeros; for the second look small values that differ from lane to lane and from load to load, the first not 0."""
    sampler = _sampler()
    if not sampler.other_values:
        return np.zeros(shape, dtype=dtype)
    load = sampler.loads % LOADS
    sampler.loads += 1
    level = STEP * (LOADS - 1 - load if sampler.falling else load)
    count = int(np.prod(shape))
    least = 0 if np.dtype(dtype).kind in "ub" else -1
    return (np.arange(2, count + 2) % 5 + least + level).reshape(shape).astype(dtype)
