"""What the sampled programs of a launch say of the whole launch. Torch-free."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.wire.sample_messages import Flow

from . import footprint
from .footprint import Footprint
from .program_sample import Programs, Sample


@dataclass(slots=True)
class Touched:
    """What one program did to one allocation."""

    read_bytes: int = 0
    write_bytes: int = 0
    parts: list[Footprint] = field(default_factory=list)

    @property
    def requested_bytes(self) -> int:
        """Of all lanes."""
        return self.read_bytes + self.write_bytes


@dataclass(slots=True)
class Program:
    """What one sampled program did."""

    touched: dict[int, Touched] = field(default_factory=dict)
    """By the address of the storage; 0 where that is not known."""
    trail: list[Access] = field(default_factory=list)
    dot_flops: int = 0

    @property
    def read_bytes(self) -> int:
        """Requested, of all allocations."""
        return sum(one.read_bytes for one in self.touched.values())

    @property
    def write_bytes(self) -> int:
        """Requested, of all allocations."""
        return sum(one.write_bytes for one in self.touched.values())


@dataclass(slots=True, frozen=True)
class Access:
    """One access of a program."""

    line: int
    kind: str
    requested_bytes: int
    home: int
    checksum: int
    """Of its addresses."""

    def asks_as(self, other: Access) -> bool:
        """Whether both ask the same allocation for as many bytes, wherever they lie."""
        return (self.line, self.kind, self.requested_bytes, self.home) == (
            other.line,
            other.kind,
            other.requested_bytes,
            other.home,
        )


def flow(
    grid: Programs,
    chosen: Sample,
    programs: Mapping[int, Program],
    sizes: Mapping[int, int],
    loose: frozenset[int],
) -> Flow:
    """
    The bytes of one launch.

    `sizes` are the bytes of each allocation; `loose` are those whose addresses depend on loaded values, so that what is
    distinct there is not known: as many bytes as were requested at most, none at least.
    """
    reads = grid.extrapolate(chosen, lambda number: programs[number].read_bytes)
    writes = grid.extrapolate(chosen, lambda number: programs[number].write_bytes)
    both = grid.extrapolate(chosen, lambda number: programs[number].read_bytes + programs[number].write_bytes)
    flops = grid.extrapolate(chosen, lambda number: programs[number].dot_flops)
    low = high = die = 0
    for home in {home for program in programs.values() for home in program.touched}:
        if home in loose:
            unique = _requested(grid, chosen, programs, home, sizes.get(home))
        else:
            unique = _distinct(grid, chosen, programs, home, sizes.get(home))
        low, high, die = low + unique[0], high + unique[1], die + unique[2]
    return Flow(
        launches=1,
        programs=grid.count,
        sampled=len(programs),
        requested_read_bytes=reads.mean,
        requested_write_bytes=writes.mean,
        requested_low_bytes=both.low,
        requested_high_bytes=both.high,
        unique_low_bytes=low,
        unique_high_bytes=high,
        die_bytes=die,
        dies=grid.dies,
        group=len(chosen.group),
        dot_flops=flops.mean,
    )


def _distinct(
    grid: Programs, chosen: Sample, programs: Mapping[int, Program], home: int, size: int | None
) -> tuple[int, int, int]:
    """
    Distinct bytes of one allocation: at least, at most, and at most on each die, added up.

    At most its size, and at most what all programs touch if none shares anything; on a die, where all share as the
    sampled neighbours there do, at most that share of it.
    """
    parts = {
        number: footprint.union(program.touched[home].parts)
        for number, program in programs.items()
        if home in program.touched
    }
    seen = footprint.union(parts.values()).size
    if chosen.complete:
        dealt = [
            footprint.union(part for number, part in parts.items() if number % grid.dies == die).size
            for die in range(grid.dies)
        ]
        return seen, seen, sum(dealt)
    alone = grid.extrapolate(chosen, lambda number: parts[number].size if number in parts else 0).high
    group = [parts[number] for number in chosen.group if number in parts]
    shared = footprint.union(group).size / max(sum(part.size for part in group), 1) if group else 1.0
    most = max(alone if size is None else min(alone, size), seen)
    on_dies = round(alone * shared)
    return seen, most, max(on_dies if size is None else min(on_dies, size * grid.dies), most)


def _requested(
    grid: Programs, chosen: Sample, programs: Mapping[int, Program], home: int, size: int | None
) -> tuple[int, int, int]:
    asked = grid.extrapolate(
        chosen,
        lambda number: touched.requested_bytes if (touched := programs[number].touched.get(home)) else 0,
    ).high
    if size is None:
        return 0, asked, asked
    return 0, min(asked, size), min(asked, size * grid.dies)
