"""Devices: samples of their state, waits, quarantine, and a node without a GPU that is fit."""

from __future__ import annotations

import msgspec

from .base import Event


class DeviceSampled(Event, frozen=True, kw_only=True, tag="device_sampled"):
    """A device's state; a value that cannot be read is `None`, never 0."""

    device: str
    description: str
    busy_with: tuple[str, ...] = ()
    """Attempts that are being judged on it."""
    utilisation: float | None = None
    """0 to 1."""
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    clock_mhz: float | None = None


class DeviceUser(msgspec.Struct, frozen=True):
    """A process that runs or times on a device."""

    user: str
    pid: int
    session: str = ""
    """Empty outside sessions."""


class DeviceAwaited(Event, frozen=True, kw_only=True, tag="device_awaited"):
    """A candidate waits for other users of a device, until the next `StageStarted` on it."""

    device: str
    holders: tuple[str, ...]
    """The users that run or time on it, in words."""
    users: tuple[DeviceUser, ...] = ()
    """The same users."""


class DeviceQuarantined(Event, frozen=True, kw_only=True, tag="device_quarantined"):
    """A device failed its health probe; this engine judges on other devices from now on."""

    device: str
    why: str


class VerificationRead(Event, frozen=True, kw_only=True, tag="verification_read"):
    """Whether `doctor --verify-gpu` verified the session's GPUs; recorded at an engine's start if it changed."""

    standings: dict[str, str]
    """`verified on this node, 2026-11-26` and the like, by product."""


class NodePaused(Event, frozen=True, kw_only=True, tag="node_paused"):
    """No GPU of the session passes its health probe, so nothing is judged. Recorded at each probe."""

    why: str
    next_probe_s: float


class NodeResumed(Event, frozen=True, kw_only=True, tag="node_resumed"):
    """At least one GPU passes its health probe again."""

    seconds: float
    """Time without judging."""
