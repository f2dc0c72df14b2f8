"""Messages between the judge and the verifier, a clean process that replays records of calls. Torch-free."""

from __future__ import annotations

import msgspec

from .guest_messages import Argument, CaseTraffic, Hello
from .records import Record


class Study(msgspec.Struct, frozen=True, tag="study"):
    """The candidate whose records follow; its host code never runs."""

    source: str
    target: str
    allowed: tuple[str, ...]


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


class Replayed(msgspec.Struct, frozen=True, tag="replayed"):
    """The record ran. Proof: of the candidate's code only its kernels took part."""

    outputs: tuple[ReplayedOutput, ...]
    kernels: tuple[str, ...]
    traffic: CaseTraffic
    unsupported: str
    touched: tuple[str, ...]
    """Inputs that were written to, even with the values that they had."""


class NotReplayed(msgspec.Struct, frozen=True, tag="not_replayed"):
    """The record did not run to its end."""

    kind: str
    """`refused` (no honest call makes such a record), `diverged` (Python had read other values), `unable` (the verifier
    cannot run it), `waits` (cannot run backwards, because programs wait for others)."""
    message: str
    error_kind: str = ""
    line: int | None = None


VerifierRequest = Study | Replay
VerifierReport = Hello | Replayed | NotReplayed
VERIFIER_REQUESTS: msgspec.msgpack.Decoder[VerifierRequest] = msgspec.msgpack.Decoder(VerifierRequest)
VERIFIER_REPORTS: msgspec.msgpack.Decoder[VerifierReport] = msgspec.msgpack.Decoder(VerifierReport)
