"""Messages between the clock and a timer, the process that launches and samples one side of a timing. Torch-free."""

from __future__ import annotations

import msgspec

from .guest_messages import Argument, Broken, Failed, Farewell, Hello, LeftBehind, Load, Loaded, Returned
from .launch_tape import Tape

LEAST_IN_BLOCK = 5
"""Calls sampled at once, after new inputs; the clock may fetch the output of any of them."""
MOST_COPIES = 16


def count_copies(sets: int, arena_bytes: int, rotate_bytes: int) -> int:
    """Return how many copies of a case's inputs the timer makes: a multiple of `sets`, `rotate_bytes` together if possible.

    Copy `n` has the values of set `n % sets`.
    """
    copies = min(max(sets, -(-rotate_bytes // arena_bytes)), MOST_COPIES)
    return copies + -copies % sets


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """The next case, with several sets of values: in shared device memory, or in arenas sent along as descriptors."""

    nonce: str
    entry_point: str
    case: str
    arguments: tuple[Argument, ...]
    arena_bytes: int
    handles: tuple[bytes, ...]
    """Handles of shared device memory; empty: descriptors come with the message."""
    rotate_bytes: int
    """The timer copies the inputs until all copies together have this size."""
    flush_bytes: int
    chosen: dict[str, str]
    ahead: bool
    """Compile every launch in every config, but run none; inputs are not read."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The case is compiled, tuned and warm."""

    nonce: str
    call_ms: float
    peak_bytes: int
    configs: dict[str, str]


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Time calls one by one."""

    nonce: str
    count: int
    cold: bool


class Sampled(msgspec.Struct, frozen=True, tag="sampled"):
    """Milliseconds of each call between two device events, as the timer reports them."""

    nonce: str
    samples_ms: tuple[float, ...]


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Do something many times and wait for all of it; the clock measures with its own watch."""

    nonce: str
    kind: str
    """`around` (all but the calls), `calls` (as sampled), `plain` (calls back to back), `capture` (a graph), `graph`."""
    count: int
    cold: bool


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The request is done."""

    nonce: str
    problem: str = ""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """Write new values into the same tensors: from shared device memory, or from an arena that comes with the message."""

    nonce: str
    handle: bytes


class BringBack(msgspec.Struct, frozen=True, tag="bring_back"):
    """Write one used copy of the inputs into the clock's memory: shared device memory, or an arena sent along."""

    nonce: str
    copy: int
    handle: bytes


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Return parts of the outputs of a call sampled since `Renew`. The answer is `Returned`; its data are the parts."""

    nonce: str
    back: int
    """Number of the call, counted back from 0, the last one."""
    parts: tuple[tuple[int, int], ...]
    """First element and count for each output, in C order."""


class Reach(msgspec.Struct, frozen=True, tag="reach"):
    """Try to open shared device memory."""

    nonce: str
    handle: bytes
    size_bytes: int


class Record(msgspec.Struct, frozen=True, tag="record"):
    """Make a tape of one call of the prepared case."""

    nonce: str


class Recorded(msgspec.Struct, frozen=True, tag="recorded"):
    """The tape, or why there is none."""

    nonce: str
    tape: Tape | None
    why_not: str = ""


class Play(msgspec.Struct, frozen=True, tag="play"):
    """Prepare and time this tape next, not a source."""

    nonce: str
    tape: Tape


TimerRequest = Load | Reach | Prepare | Sample | Batch | Renew | BringBack | Fetch | Record | Play | Farewell
TimerReport = Hello | Loaded | Failed | Broken | Prepared | Sampled | Done | Recorded | Returned | LeftBehind
TIMER_REQUESTS: msgspec.msgpack.Decoder[TimerRequest] = msgspec.msgpack.Decoder(TimerRequest)
TIMER_REPORTS: msgspec.msgpack.Decoder[TimerReport] = msgspec.msgpack.Decoder(TimerReport)
