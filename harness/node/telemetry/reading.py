"""One reading of a device by whatever library tells of it, before anything is concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness.wire.latency import DeviceState


class NotTold(Exception):
    """Nothing here tells of this device; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A process that has memory on the device."""

    pid: int
    memory_bytes: int | None = None


@dataclass(slots=True)
class Reading:
    """What was read at once; `None` where the device does not tell."""

    at_s: float
    """By `time.monotonic`."""
    clock_mhz: int | None = None
    """The lowest of the chip's clocks."""
    idle: bool = False
    hotspot_c: float | None = None
    memory_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    """By the device's own counter, from wherever it starts."""
    reasons: tuple[str, ...] | None = None
    """What holds the clock back now (NVIDIA)."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Of the time that something held the clock back, each growing (AMD)."""
    ticks: int | None = None
    """What the counters would have grown by had it held all the time."""
    memory_used_bytes: int | None = None


class Source(Protocol):
    """A library that tells of one device."""

    name: str
    """`nvml`, `amdsmi` or `sysfs`."""

    def read(self) -> Reading:
        """Everything that can be read quickly."""
        ...

    def occupants(self) -> tuple[Occupant, ...] | None:
        """Processes on the device, which some libraries look for through all of the machine's; `None` where it does not tell."""
        ...

    def state(self) -> DeviceState:
        """What the device is, and how it is; processes are left to the caller."""
        ...


def number(value: object) -> float | None:
    """A number that a library told; `None` for what it uses in place of one (`N/A`, text, a flag)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value)


def whole(value: object) -> int | None:
    """`number`, as an integer."""
    found = number(value)
    return None if found is None else int(found)
