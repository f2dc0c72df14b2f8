"""Requests to a timer, the process that launches and samples, and its answers; the ladder of clocks. Torch-free.

A timer has seats. Each seat holds one source or one launch tape, with its own copies of the inputs, and is sampled on its own.

The ladder lists how calls are timed, best clock first. The clock steps down if a player ends, hangs, cannot capture a graph, or
reports times that no call has. The table of `docs/timing.md#the-ladder-of-clocks` says what each clock counts and leaves out.
"""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec

from harness.wire.calls.launch_tape import Tape
from harness.wire.calls.tensors import Arguments
from harness.wire.results.latency import TimingMethod
from harness.wire.results.served_calls import ServedCall

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
SMALLER = 8
"""The second graph has so many times fewer nodes than the first."""
METHOD_WORDS = {
    TimingMethod.GRAPH: "in graphs",
    TimingMethod.BATCH: "back to back between two events, where host time may count",
    TimingMethod.PROFILER: "by the profiler, which leaves out the time between launches",
    TimingMethod.EVENTS: "between events",
}
"""Every method in the order of the ladder, in the words of a note."""
UNTRUSTED_GRAPHS = "`wavedeck doctor --verify-gpu` found no graph with times to trust on this GPU"
NO_GRAPH_OF_A_SOURCE = (
    "a call has no launch tape, and graphs in a process with a source are not trusted on AMD"
)


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
    arguments: Arguments
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
    graph_nodes: int | None = None
    """See `Measure`; for graphs that time the configs of an autotuned kernel."""
    releases_lines: bool = False
    """A kernel may ask the L2 cache to keep lines: make them normal lines again before each sample."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The case is compiled, tuned and warm."""

    call_ms: float
    peak_bytes: int
    configs: dict[str, str]


class TakeSample(msgspec.Struct, frozen=True, tag="sample"):
    """Time calls one by one, or replays of the captured series."""

    count: int
    cold: bool
    replays: bool = False


class Rung(msgspec.Struct, frozen=True, tag="rung"):
    """One clock of the ladder; as a request: make a series of calls of the prepared case, to be timed together by this clock."""

    method: TimingMethod
    nodes: int = 0
    """Calls in one graph at most. A series of more calls takes several graphs, so the copies of the inputs stay as many."""
    launches: int = 0
    """Calls of the series, each on its own copy of the inputs; 0: none was asked for."""


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Do something many times and wait for all of it; the clock measures with its own watch."""

    kind: str
    """`around` (all but the calls), `calls` (as sampled), `plain` (calls back to back), `graph` (replays of the series)."""
    count: int
    cold: bool


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The request is done."""

    problem: str = ""
    samples_ms: tuple[float, ...] = ()
    """Answer to `TakeSample`: each call by two device events, as the timer reports it; of a replay the mean of its calls."""


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


class TapedCall(msgspec.Struct, frozen=True, tag="taped_call"):
    """One call of a side in one case, recorded in a timer that has the side's source.

    A timer answers `Ask.RECORD` with the tape alone, and `Ask.SERVE` with `served` alone.
    """

    tape: Tape | None = None
    why_not: str = ""
    """Why there is no tape."""
    code: tuple[str, ...] = ()
    """Digests of the tape's kernels."""
    configs: dict[str, str] = {}
    """Configs that autotuned kernels chose, by kernel."""
    plain_ms: float | None = None
    """Wall time of a plain call with its host code, back to back."""
    peak_bytes: int = 0
    served: ServedCall | None = None
    """Facts that serving needs, of a candidate; `None` for a baseline."""


EVENTS = Rung(TimingMethod.EVENTS)


def list_rungs(trusted_nodes: int | None, *, taped: bool) -> tuple[Rung, ...]:
    """Return the clocks to try, best first; events come last.

    `trusted_nodes` is the size of a graph that worked on the device, 0 if none did, `None` if that was not measured. Calls of a
    source (`taped` False) are timed in graphs or between events: their own process runs the host code and reports the times.
    """
    nodes = MOST_LAUNCHES if trusted_nodes is None else min(trusted_nodes, MOST_LAUNCHES)
    sizes = dict.fromkeys((nodes, nodes // SMALLER)) if taped else (nodes,)
    graphs = tuple(Rung(TimingMethod.GRAPH, size) for size in sizes if size)
    return (
        (*graphs, Rung(TimingMethod.BATCH), Rung(TimingMethod.PROFILER), EVENTS)
        if taped
        else (*graphs, EVENTS)
    )
