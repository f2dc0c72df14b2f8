"""Requests to a timer, the process that launches and samples, and its answers. Torch-free.

A timer has seats. Each seat holds one source or one launch tape, with its own copies of the inputs, and is sampled on its own.
"""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec

from harness.wire.calls.launch_tape import Tape
from harness.wire.results.latency import Method
from harness.wire.results.served_calls import ServedCall

from .guest import Argument

LEAST_IN_BLOCK = 5
"""Calls sampled at once between events, after new inputs; the clock fetches a part of each one's output."""
SETS = 2
"""Sets of values that copies of the inputs hold by turns."""
MOST_COPIES = 16
"""Copies of the inputs for calls between events."""
MOST_LAUNCHES = 256
"""Calls in one series, and nodes in one graph."""
LEAST_LAUNCHES = 4
"""With fewer calls, the time around a graph is too large a share."""
REPLAY_MS = 1.0
"""Target time of a graph."""

LEAD = 1.5
"""Before each sample the device spins for this multiple of the host's time for a call, so that launches wait in its queue."""
MOST_LEAD_MS = 5.0


def count_copies(sets: int, arena_bytes: int, rotate_bytes: int) -> int:
    """Return how many copies of a case's inputs the timer makes: a multiple of `sets`, `rotate_bytes` together if possible.

    Copy `n` has the values of set `n % sets`.
    """
    copies = min(max(sets, -(-rotate_bytes // arena_bytes)), MOST_COPIES)
    return copies + -copies % sets


def count_launches(
    call_ms: float, input_bytes: int, bytes_a_call: int, rotate_bytes: int, most_bytes: int
) -> int:
    """Return how many calls a series has, each on its own copy of the inputs; 0 if memory is too small for a series.

    So many that a replay takes `REPLAY_MS`, and that the inputs together have `rotate_bytes` if `MOST_LAUNCHES` are enough for
    that: then each call finds its inputs out of the caches. `bytes_a_call` is the memory of a copy and of what a call
    allocates; all calls together may have `most_bytes`.
    """
    rotation = -(-rotate_bytes // max(input_bytes, 1))
    wanted = max(math.ceil(REPLAY_MS / call_ms), rotation if rotation <= MOST_LAUNCHES else 0, LEAST_LAUNCHES)
    launches = min(wanted, MOST_LAUNCHES, most_bytes // bytes_a_call)
    return launches if launches >= LEAST_LAUNCHES else 0


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """The next case, with several sets of values: in shared device memory, or in arenas sent along as descriptors."""

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
    changed_inputs: tuple[str, ...] = ()
    """See `Call.changed_inputs`."""
    returns: tuple[str, ...] = ()
    """See `Task.returns`."""
    releases_lines: bool = False
    """A kernel may ask the L2 cache to keep lines: make them normal lines again before each sample."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The case is compiled, tuned and warm."""

    call_ms: float
    peak_bytes: int
    configs: dict[str, str]


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Time calls one by one, or replays of the captured series."""

    count: int
    cold: bool
    replays: bool = False


class Sampled(msgspec.Struct, frozen=True, tag="sampled"):
    """Milliseconds of one call by two device events, as the timer reports them; of a replay the mean of its calls."""

    samples_ms: tuple[float, ...]


class Capture(msgspec.Struct, frozen=True, tag="capture"):
    """Make a series of calls of the prepared case, each on its own copy of the inputs, to be timed together."""

    launches: int
    method: Method = Method.GRAPH
    """A clock of the ladder other than events."""
    nodes: int = MOST_LAUNCHES
    """Calls in one graph at most."""


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Do something many times and wait for all of it; the clock measures with its own watch."""

    kind: str
    """`around` (all but the calls), `calls` (as sampled), `plain` (calls back to back), `graph` (replays of the series)."""
    count: int
    cold: bool


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The request is done."""

    problem: str = ""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """Write new values into the same tensors: from shared device memory, or from an arena that comes with the message."""

    handle: bytes


class BringBack(msgspec.Struct, frozen=True, tag="bring_back"):
    """Write one used copy of the inputs into the clock's memory: shared device memory, or an arena sent along."""

    copy: int
    handle: bytes


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Return parts of the outputs of calls since `Renew`. The answer is `Returned`; its data are the parts."""

    calls: tuple[int, ...]
    """The calls, counted back from 0, the last one. Each gives an equal piece of every part, in this order."""
    parts: tuple[tuple[int, int], ...]
    """First element and count for each output, in C order."""


def pieces(part: tuple[int, int], calls: int) -> list[tuple[int, int]]:
    """Return first element and count of each call's piece of a part; the pieces cover the part in order."""
    start, count = part
    ends = [start + count * number // calls for number in range(calls + 1)]
    return [(first, last - first) for first, last in pairwise(ends)]


class Reach(msgspec.Struct, frozen=True, tag="reach"):
    """Try to open shared device memory."""

    handle: bytes
    size_bytes: int


class Record(msgspec.Struct, frozen=True, tag="record"):
    """Make a tape of one call of the prepared case."""


class Recorded(msgspec.Struct, frozen=True, tag="recorded"):
    """The tape, or why there is none."""

    tape: Tape | None
    why_not: str = ""


class TryServing(msgspec.Struct, frozen=True, tag="try_serving"):
    """Make calls of the prepared case, with the source's own host code, as a server makes them."""

    host_ms: float
    """The host's time for a call."""


class TriedServing(msgspec.Struct, frozen=True, tag="tried_serving"):
    """Facts that these calls showed."""

    call: ServedCall


class Play(msgspec.Struct, frozen=True, tag="play"):
    """Prepare and time this tape next, not a source."""

    tape: Tape


class Clear(msgspec.Struct, frozen=True, tag="clear"):
    """Drop all seats, with their kernels and memory."""
