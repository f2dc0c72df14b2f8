"""Estimates a whole launch's memory traffic from its sampled programs. Torch-free."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.wire.messages.sampler import Flow

from . import footprint
from .footprint import Footprint
from .program_sample import LaunchGrid, ProgramSample, Total


@dataclass(slots=True)
class Touched:
    """One program's traffic with one allocation; bytes of all its accesses, repeated bytes counted again."""

    read_bytes: int = 0
    write_bytes: int = 0
    parts: list[Footprint] = field(default_factory=list)


@dataclass(slots=True)
class Program:
    """One sampled program."""

    touched: dict[int, Touched] = field(default_factory=dict)
    """Key: the allocation's address, 0 if the allocation is unknown."""
    trail: list[Access] = field(default_factory=list)
    dot_flops: int = 0

    @property
    def read_bytes(self) -> int:
        """Requested from all allocations."""
        return sum(touched.read_bytes for touched in self.touched.values())

    @property
    def write_bytes(self) -> int:
        """Requested from all allocations."""
        return sum(touched.write_bytes for touched in self.touched.values())

    def requested_from(self, home: int) -> int:
        """Bytes read from and written to one allocation."""
        touched = self.touched.get(home)
        return touched.read_bytes + touched.write_bytes if touched else 0


class Access(NamedTuple):
    """One access of a program."""

    line: int
    kind: str
    requested_bytes: int
    home: int
    """The allocation's address."""
    checksum: int
    """Hash of all addresses."""

    def has_size_of(self, access: Access) -> bool:
        """Whether both request equally many bytes of the same allocation, at any addresses."""
        return self._replace(checksum=0) == access._replace(checksum=0)


class _UniqueBytes(NamedTuple):
    """Bounds for the distinct bytes of one allocation."""

    low: int
    high: int
    die: int
    """Upper bound for the sum over dies of each die's distinct bytes."""


@dataclass(frozen=True, slots=True)
class SampledLaunch:
    """The programs of one launch that ran."""

    grid: LaunchGrid
    sample: ProgramSample
    programs: Mapping[int, Program]

    def flow(self, sizes: Mapping[int, int], loose: frozenset[int]) -> Flow:
        """
        The bytes of the whole launch.

        `sizes`: bytes of each allocation. `loose`: allocations with addresses that depend on loaded values. Their distinct
        bytes are unknown: at least 0, at most the requested bytes.
        """
        both = self._total(lambda program: program.read_bytes + program.write_bytes)
        homes = {home for program in self.programs.values() for home in program.touched}
        bounds = [
            self._requested(home, sizes.get(home)) if home in loose else self._distinct(home, sizes.get(home))
            for home in homes
        ]
        return Flow(
            launches=1,
            programs=self.grid.count,
            sampled=len(self.programs),
            requested_read_bytes=self._total(lambda program: program.read_bytes).mean,
            requested_write_bytes=self._total(lambda program: program.write_bytes).mean,
            requested_low_bytes=both.low,
            requested_high_bytes=both.high,
            unique_low_bytes=sum(unique.low for unique in bounds),
            unique_high_bytes=sum(unique.high for unique in bounds),
            die_bytes=sum(unique.die for unique in bounds),
            dies=self.grid.dies,
            group=len(self.sample.group),
            dot_flops=self._total(lambda program: program.dot_flops).mean,
        )

    def _total(self, value: Callable[[Program], int]) -> Total:
        return self.grid.extrapolate(self.sample, lambda number: value(self.programs[number]))

    def _distinct(self, home: int, size: int | None) -> _UniqueBytes:
        """
        Distinct bytes of one allocation: at most its size, and at most the sum over programs if no two share a byte.

        On a die: at most that sum, reduced as the sampled neighbours on one die share their bytes.
        """
        parts = {
            number: footprint.union(program.touched[home].parts)
            for number, program in self.programs.items()
            if home in program.touched
        }
        seen = footprint.union(parts.values()).size
        dies = self.grid.dies
        if self.sample.complete:
            by_die = [
                footprint.union(part for number, part in parts.items() if number % dies == die).size
                for die in range(dies)
            ]
            return _UniqueBytes(seen, seen, sum(by_die))
        unshared = self.grid.extrapolate(
            self.sample, lambda number: parts[number].size if number in parts else 0
        ).high
        group = [parts[number] for number in self.sample.group if number in parts]
        share = footprint.union(group).size / max(sum(part.size for part in group), 1) if group else 1.0
        high = max(unshared if size is None else min(unshared, size), seen)
        on_dies = round(unshared * share)
        return _UniqueBytes(seen, high, max(on_dies if size is None else min(on_dies, size * dies), high))

    def _requested(self, home: int, size: int | None) -> _UniqueBytes:
        high = self._total(lambda program: program.requested_from(home)).high
        if size is None:
            return _UniqueBytes(0, high, high)
        return _UniqueBytes(0, min(high, size), min(high, size * self.grid.dies))
