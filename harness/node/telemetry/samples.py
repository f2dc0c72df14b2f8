"""What crosses between a telemetry client and its sampler: one JSON document a line, a reply to each request."""

from __future__ import annotations

import msgspec

from harness.wire.latency import DeviceState, Window


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One sample of a device."""

    at_s: float
    """By `time.monotonic`, which all processes of a machine share."""
    clock_mhz: int | None = None
    """The lowest of the chip's clocks."""
    others: int | None = None
    """Processes that are not ours; `None` where they cannot be told."""
    idle: bool = False
    """The device said that it had nothing to do: its clock then says nothing of a kernel."""
    energy_j: float | None = None
    """By the device's own counter, from wherever it starts."""


class Watched(msgspec.Struct, frozen=True):
    """A window, and the samples that it was made of."""

    window: Window
    points: tuple[Point, ...] = ()
    note: str = ""
    """Why nothing, or not all, is told; empty where all went well."""


class AskState(msgspec.Struct, frozen=True, tag="state"):
    """What the device is now. With pids (of ours; their children count too), processes of others are counted."""

    own_pids: tuple[int, ...] | None = None


class Begin(msgspec.Struct, frozen=True, tag="begin"):
    """A window begins; one that had begun is forgotten."""

    own_pids: tuple[int, ...] = ()


class End(msgspec.Struct, frozen=True, tag="end"):
    """The window ends."""


class StateTold(msgspec.Struct, frozen=True, tag="state_told"):
    """The answer to `AskState`."""

    state: DeviceState
    source: str
    note: str = ""


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    """The answer to `Begin`: the first sample is taken."""


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """The answer to `End`."""

    watched: Watched


Request = AskState | Begin | End
Reply = StateTold | Begun | Ended
REQUESTS: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
REPLIES: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)
