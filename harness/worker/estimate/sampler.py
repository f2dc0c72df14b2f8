"""Runs a few programs of each launch at `gpu` sizes and counts the bytes that they request, without touching memory.

Loads return made-up values and stores do nothing, so only addresses and masks are computed. Some programs run again with
other values: if they then request other bytes, the kernel depends on its data and no sample is possible.
For a process that only samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.wire.results.evaluation import Flow
from harness.worker.interpreter import interpreted_launches
from harness.worker.interpreter.candidate_lines import candidate_line
from harness.worker.interpreter.observing import cannot, current
from harness.worker.interpreter.tapes.programs import Programs
from harness.worker.interpreter.traffic import MAX_REPORTS, Allocation, Observation, Origin
from harness.worker.kit.arena import Span

from . import footprint
from .extrapolation import Access, Program, SampledLaunch, Touched
from .program_sample import LaunchGrid

LANES_AN_ACCESS = 1 << 14
"""So many lanes cost about as much time as the access itself."""
AFFORDABLE = 1600
"""Cost of one launch's sample at most, in accesses; lanes count too. Larger programs mean fewer programs."""
ENDLESS = 1 << 17
"""Cost of one program at most, in accesses; lanes count too."""
WAITING = 1024
"""So many identical accesses in a row mean that a program waits for a value, which no program writes here."""
CHECKED = 2
"""Programs that run again with other values."""
STEP, LOADS = 7, 16
"""Made-up values grow by STEP from load to load and restart after LOADS loads, so they fit into 8 bits."""
MERGED = 256
"""Parts of a footprint that are collected before they are merged."""

_UNUSED = {
    "create_store": (1,),
    "create_masked_store": (1,),
    "create_dot": (0, 1, 2),
    "create_atomic_rmw": (2,),
    "create_atomic_cas": (1, 2),
}
"""Arguments of which the functions below read only the shape, so their values need no computing."""

RunProgram = Callable[[tuple[int, int, int]], None]


class Sampler(Observation):
    """The observation of one call of an entry point at `gpu` sizes."""

    def __init__(self, dies: int) -> None:
        super().__init__(samples=True)
        self.dies = dies
        self.flows: list[Flow] = []
        self.remarks: dict[str, None] = {}
        self.other_values = False
        self.loads = 0
        """Loads of the running program so far."""
        self.falling = False
        """Whether later loads return smaller values than earlier loads; only with `other_values`."""
        self.program = Program()
        self._cost = 0.0
        self._repeats = 0
        self._misses: dict[tuple[str, int, str], str] = {}

    def touch(
        self, kind: str, addresses: Any, mask: Any | None, item_bytes: int, origin: Origin | None
    ) -> None:
        """Count one access."""
        # A combined mask may hold integers, and numpy would use integers as an index.
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
        touched = self.program.touched.setdefault(home, Touched())
        if kind != "store":
            touched.read_bytes += requested
        if kind != "load":
            touched.write_bytes += requested
        touched.parts.append(part)
        if len(touched.parts) > MERGED:
            touched.parts = [footprint.union(touched.parts)]
        checksum = hash((part.starts.tobytes(), part.ends.tobytes()))
        self._note(Access(line, kind, requested, home, checksum))
        if origin is not None and not self.other_values:
            self._check_bounds(kind, line, reach, item_bytes, origin)

    def count_dot(self, flops: int) -> None:
        """Count the operations of a matrix product."""
        self.program.dot_flops += flops

    def make_up(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Zeros; with `other_values`, small values that differ between lanes and between loads, the first not 0."""
        if not self.other_values:
            return np.zeros(shape, dtype=dtype)
        load = self.loads % LOADS
        self.loads += 1
        level = STEP * (LOADS - 1 - load if self.falling else load)
        count = int(np.prod(shape))
        least = 0 if np.dtype(dtype).kind in "ub" else -1
        return (np.arange(2, count + 2) % 5 + least + level).reshape(shape).astype(dtype)

    def _note(self, access: Access) -> None:
        trail = self.program.trail
        is_repeat = bool(trail) and trail[-1] == access and access.requested_bytes > 0
        self._repeats = self._repeats + 1 if is_repeat else 1
        if self._repeats >= WAITING:
            raise cannot(f"a program waits for a value that another one writes (line {access.line})")
        trail.append(access)

    @property
    def misses(self) -> tuple[str, ...]:
        """Accesses outside their tensor, one line each; not accesses with addresses that depend on values."""
        return tuple(self._misses.values())[:MAX_REPORTS]

    def run(self, grid: LaunchGrid, run_program: RunProgram) -> None:
        """Run the sampled programs of one launch and append its flow."""
        if self.unsupported is not None:
            raise cannot(self.unsupported)
        programs = {grid.middle: self._run_one(grid.middle, grid, run_program)}
        # The first program gives the cost of all: the same kernel at the same sizes always has the same sample.
        sample = grid.sample(int(AFFORDABLE / max(self._cost, 1)))
        for number in sample.all:
            if number not in programs:
                programs[number] = self._run_one(number, grid, run_program)
        checked = list(programs)[:: max(len(programs) - 1, 1)][:CHECKED]
        loose = self._find_loose({number: programs[number] for number in checked}, grid, run_program)
        sizes = {
            address: allocation.span.end - allocation.span.start
            for address, allocation in self.allocations.items()
        }
        self.flows.append(SampledLaunch(grid, sample, programs).flow(sizes, loose))

    def _run_one(self, number: int, grid: LaunchGrid, run_program: RunProgram) -> Program:
        self.program, self._cost, self.loads = Program(), 0.0, 0
        run_program(grid.position(number))
        return self.program

    def _find_loose(
        self, programs: Mapping[int, Program], grid: LaunchGrid, run_program: RunProgram
    ) -> frozenset[int]:
        """Run programs again with other values; returns the allocations that were accessed at other addresses.

        Values rise from load to load in one program and fall in the other. So the difference of two loaded values, such as
        the bounds of a row, is positive in one of them.
        """
        loose: set[int] = set()
        self.other_values, self.falling = True, False
        try:
            for number, program in programs.items():
                before, after = program.trail, self._run_one(number, grid, run_program).trail
                self.falling = True
                pairs = list(zip(before, after, strict=False))
                changed = next((old for old, new in pairs if not old.has_size_of(new)), None)
                if changed is not None or len(before) != len(after):
                    access = changed or (before or after)[-1]
                    raise cannot(
                        f"which bytes it asks for depends on values that it loads (line {access.line})"
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
        for address, allocation in self.allocations.items():
            if allocation.span.start <= reach.start and reach.end <= allocation.span.end:
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

    def _add(self, address: int, span: Span, holder: torch.UntypedStorage) -> None:
        """Add an allocation without its byte maps, which would be as large as the tensor."""
        empty = np.empty(0, dtype=np.uint8)
        self.allocations[address] = Allocation(span, holder, empty, empty)


def install() -> None:
    """Turn every launch of this process into a sample. Call it once, after `interpreter.prepare`."""
    interpreted_launches.replace_programs(_sample_programs)


def _sample_programs(kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    sampler = current()
    if not isinstance(sampler, Sampler):
        raise cannot("a kernel was launched outside the entry point")
    if math.prod(grid) > 0:
        run = Programs(kernel.rewrite(), arguments, several=True, unused=_UNUSED).run
        sampler.run(LaunchGrid(grid, sampler.dies), run)
