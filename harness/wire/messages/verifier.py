"""The request to a verifier, a clean process that replays records of calls, and its answers. Torch-free."""

from __future__ import annotations

import msgspec

from harness.wire.calls.records import Record

from .guest import Argument, CaseTraffic


class Replay(msgspec.Struct, frozen=True, tag="replay"):
    """Run one record. Descriptor: the arena that holds the inputs."""

    case: str
    record: Record
    arguments: tuple[Argument, ...]
    arena_bytes: int
    backwards: bool = False
    """Run the programs of each launch from the last to the first."""
    zero_lanes: bool = False
    """See `Call.zero_lanes`."""


class ReplayedOutput(msgspec.Struct, frozen=True):
    """One output of a replay."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    origins: dict[str, int]
    """Number of elements by origin; see `shadow`."""
    storage: int
    first_byte: int
    end_byte: int


class ReplayResult(msgspec.Struct, frozen=True):
    """The answer to a `Replay`, of one of two kinds."""


class Replayed(ReplayResult, frozen=True, tag="replayed"):
    """The record ran. Proof: of the candidate's code only its kernels took part."""

    outputs: tuple[ReplayedOutput, ...]
    kernels: tuple[str, ...]
    traffic: CaseTraffic
    unsupported: str
    touched: tuple[str, ...]
    """Inputs that were written to, even with the values that they had."""


class NotReplayed(ReplayResult, frozen=True, tag="not_replayed"):
    """The record did not run to its end."""

    kind: str
    """`refused` (no honest call makes such a record), `diverged` (Python had read other values), `unable` (the verifier
    cannot run it), `waits` (cannot run backwards, because programs wait for others)."""
    message: str
    error_kind: str = ""
    line: int | None = None
