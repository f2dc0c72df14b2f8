"""One reading of a device, and the interface of the libraries and files that give readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.wire.results.provenance import Provenance


class SourceUnavailable(Exception):
    """No source reads this device; the message names the fix."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A process that has memory on the device."""

    pid: int
    memory_bytes: int | None = None


@dataclass(slots=True)
class Reading:
    """Values read at one time; `None` for a value that the device does not report."""

    at_s: float
    """By `time.monotonic`."""
    clock_mhz: int | None = None
    """The lowest of the chip's clocks."""
    idle: bool = False
    hotspot_c: float | None = None
    memory_c: float | None = None
    power_w: float | None = None
    reasons: tuple[str, ...] | None = None
    """Reasons why the clock is held back now (NVIDIA)."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Time for which each reason held the clock back (AMD)."""
    ticks: int | None = None
    """The growth of a counter whose reason holds all the time."""
    busy_percent: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None


class Source(Protocol):
    """A library, or the driver's files, that reads one device."""

    name: str
    """`nvml`, `amdsmi` or `sysfs`."""

    def read(self) -> Reading:
        """Read all values that can be read quickly."""

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Return the processes on the device, `None` if unknown. May be slow: some libraries search all processes."""

    def provenance(self) -> Provenance:
        """Return what the device is, with its driver. Software is empty."""


def number(value: object) -> float | None:
    """Return a number that a library reported; `None` for `N/A`, text or a flag."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def whole(value: object) -> int | None:
    """Return `number(value)` as an integer."""
    result = number(value)
    return None if result is None else int(result)
