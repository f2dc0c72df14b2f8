"""Messages between `Telemetry` and its sampler process: one JSON document per line, one reply to each request."""

from __future__ import annotations

import msgspec

from harness.wire.results.latency import DeviceReading, Window
from harness.wire.results.provenance import Provenance


class DevicePoint(msgspec.Struct, frozen=True, array_like=True):
    """One sample of a device."""

    at_s: float
    """By `time.monotonic`, which all processes of a machine share."""
    clock_mhz: int | None = None
    """The lowest of the chip's clocks."""
    others: int | None = None
    """Processes of others on the device; `None` if unknown."""
    idle: bool = False
    """The device had no work, so its clock says nothing about a kernel."""


class Watched(msgspec.Struct, frozen=True, tag="watched"):
    """A window and its samples, the reply to `EndSampling`."""

    window: Window
    points: tuple[DevicePoint, ...] = ()
    note: str = ""
    """Why values are missing; empty if none are."""


class AskState(msgspec.Struct, frozen=True, tag="state"):
    """Report the current state. With `own_pids` (their children are ours too) count the processes of others."""

    own_pids: tuple[int, ...] | None = None


class BeginSampling(msgspec.Struct, frozen=True, tag="begin"):
    """Begin a window; an open one is dropped."""

    own_pids: tuple[int, ...] = ()


class EndSampling(msgspec.Struct, frozen=True, tag="end"):
    """End the window."""


class StateReport(msgspec.Struct, frozen=True, tag="state_told"):
    """The reply to `AskState`."""

    state: DeviceReading
    source: str
    note: str = ""
    provenance: Provenance = Provenance()
    """Hardware and driver; software is empty."""


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The reply to `BeginSampling`; the first sample is taken."""


Request = AskState | BeginSampling | EndSampling
Reply = StateReport | Begun | Watched
REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
