"""What crosses between engine, clock and timers. Torch-free."""

from __future__ import annotations

import msgspec

from suites.task import Task

from .effort import WHOLE, Effort
from .evaluation import ErrorReport
from .launch_tape import Tape
from .limits import TimeLimits
from .messages import (
    Alive,
    Argument,
    Broken,
    Failed,
    Farewell,
    Hello,
    JudgeRequest,
    LeftBehind,
    Load,
    Loaded,
    Returned,
    text_to_path,
)

BASELINE, CANDIDATE, RIVAL, TAPE = "baseline", "candidate", "rival", "tape"
"""Sides. Of `tape` is the process that plays the candidate's launches and never sees its source."""

LEAST_IN_BLOCK = 5
"""Calls sampled at once. So many follow new inputs, and the output of any of them may be asked for."""


class Timer(msgspec.Struct, frozen=True, tag="timer"):
    """One process to time in. Descriptor beside it: the judge's end of its channel."""

    side: str
    pair: int
    pid: int


class NeedTimers(msgspec.Struct, frozen=True, tag="need_timers"):
    """The clock wants processes of each of these sides; the engine answers with `Timer`, one for each."""

    sides: tuple[str, ...]
    count: int
    """Of each side."""
    instead: bool
    """Of those it has, which are over."""


class LeaseWanted(msgspec.Struct, frozen=True, tag="lease_wanted"):
    """All is compiled: the device is wanted alone. The engine answers with `Leased`."""


class Leased(msgspec.Struct, frozen=True, tag="leased"):
    """The device is the clock's alone."""


class Block(msgspec.Struct, frozen=True):
    """Samples that one process took in a row."""

    began_s: float
    ended_s: float
    """By `time.monotonic`."""
    samples_ms: tuple[float, ...]


class Drawn(msgspec.Struct, frozen=True):
    """A stretch of nothing but plain calls, for the device's energy counter."""

    began_s: float
    ended_s: float
    """By `time.monotonic`."""
    calls: int


class ProcessTimes(msgspec.Struct, frozen=True):
    """What one process took for one case."""

    side: str
    pair: int
    case: str
    blocks: tuple[Block, ...]
    wall_ms: float | None
    """A call by the clock's own watch: calls with everything around them, less everything around them."""
    plain_ms: float | None
    """A plain call, back to back, by the clock's own watch."""
    graph_ms: float | None
    """A replay of a call captured as a graph, likewise."""
    why_no_graph: str
    peak_bytes: int
    configs: dict[str, str]
    """Of autotuned kernels, by name."""
    drawn: Drawn | None = None


class Floor(msgspec.Struct, frozen=True):
    """What the device and the clock on it are worth."""

    empty_ms: float
    """An empty kernel between two events."""
    copies: tuple[tuple[int, float, float], ...]
    """Bytes copied; bytes a second (read and written) with caches cold, and hot."""


class Taped(msgspec.Struct, frozen=True):
    """What came of a case's launch tape."""

    case: str
    launches: int = 0
    code: tuple[str, ...] = ()
    """Digests of the binaries' code."""
    played: bool = False
    """Another process played it on inputs of its own, and its outputs were right."""
    why_not: str = ""


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """All that was timed."""

    times: tuple[ProcessTimes, ...]
    floor: Floor | None
    tapes: tuple[Taped, ...] = ()
    confirmed_outputs: int = 0
    """Outputs of timed calls that were compared with the oracle, and right."""
    verdict: str = ""
    """Of the candidate, where timing found it to be other than correct."""
    error: ErrorReport | None = None
    problem: str = ""
    """Why not all was timed, where the candidate is not to blame."""
    seconds: dict[str, float] = {}
    """Where the clock's time went, by phase."""
    not_shared: str = ""
    """Why inputs went through host memory; empty where they did not."""


class Prepare(msgspec.Struct, frozen=True, tag="prepare"):
    """The next case, with several sets of other values: in shared device memory, or beside it descriptors of arenas."""

    nonce: str
    entry_point: str
    case: str
    arguments: tuple[Argument, ...]
    arena_bytes: int
    handles: tuple[bytes, ...]
    """Of shared device memory; none: descriptors beside it."""
    rotate_bytes: int
    """Copies of the inputs are made until they are as large together."""
    flush_bytes: int
    """Read before each cold sample."""
    chosen: dict[str, str]
    """Configs that autotuned kernels are held to, by name."""
    ahead: bool
    """Compile what a call launches, every config, and run none of it: inputs are not read."""


class Prepared(msgspec.Struct, frozen=True, tag="prepared"):
    """The case is compiled, tuned and warm."""

    nonce: str
    call_ms: float
    """Time that the host needs to launch one call."""
    peak_bytes: int
    configs: dict[str, str]


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Time calls one by one."""

    nonce: str
    count: int
    cold: bool


class Sampled(msgspec.Struct, frozen=True, tag="sampled"):
    """Milliseconds of each call, by the device's events: the timer's word."""

    nonce: str
    samples_ms: tuple[float, ...]


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Do something many times and wait for all of it; the asker looks at its own watch."""

    nonce: str
    kind: str
    """`around` (all but the calls), `calls` (as sampled), `plain` (calls back to back), `capture` (a graph), `graph`."""
    count: int
    cold: bool


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The batch is over."""

    nonce: str
    problem: str = ""
    """Why it could not be done."""


class Renew(msgspec.Struct, frozen=True, tag="renew"):
    """Other values, in the same tensors: of the same layout, in shared device memory or in an arena beside it."""

    nonce: str
    handle: bytes


class BringBack(msgspec.Struct, frozen=True, tag="bring_back"):
    """Put a copy of the inputs, as calls left it, into memory of the clock's: shared device memory, or an arena beside it."""

    nonce: str
    copy: int
    handle: bytes


class Fetch(msgspec.Struct, frozen=True, tag="fetch"):
    """Parts of the outputs of one of the calls sampled since the inputs were renewed; answered by `Returned`, whose data are the parts."""

    nonce: str
    back: int
    """0 is the last call."""
    parts: tuple[tuple[int, int], ...]
    """Of each output, in C order: the first element and how many."""


class Reach(msgspec.Struct, frozen=True, tag="reach"):
    """Try to open shared device memory."""

    nonce: str
    handle: bytes
    size_bytes: int


class Record(msgspec.Struct, frozen=True, tag="record"):
    """Make a tape of one call of the case at hand."""

    nonce: str


class Recorded(msgspec.Struct, frozen=True, tag="recorded"):
    """The tape, or why there is none."""

    nonce: str
    tape: Tape | None
    why_not: str = ""


class Play(msgspec.Struct, frozen=True, tag="play"):
    """What is prepared and timed next is this tape, in place of a source."""

    nonce: str
    tape: Tape


TimerRequest = Load | Reach | Prepare | Sample | Batch | Renew | BringBack | Fetch | Record | Play | Farewell
TimerReport = Hello | Loaded | Failed | Broken | Prepared | Sampled | Done | Recorded | Returned | LeftBehind
TIMER_REQUESTS: msgspec.msgpack.Decoder[TimerRequest] = msgspec.msgpack.Decoder(TimerRequest)
TIMER_REPORTS: msgspec.msgpack.Decoder[TimerReport] = msgspec.msgpack.Decoder(TimerReport)


class Measure(msgspec.Struct, frozen=True, tag="measure"):
    """Time a candidate that was just judged correct, against others."""

    task: Task
    """With the sizes at which it was judged."""
    sources: dict[str, str]
    """By side."""
    seed: int
    target: str
    limits: TimeLimits
    cold: bool
    against: str
    """Name of the baseline."""
    flush_bytes: int
    budget_s: float
    """For all cases together, once the device is leased."""
    effort: Effort = WHOLE
    energy_s: float = 0.0
    """That each side's plain calls go on for, in each case, where the device counts energy; 0: they need not."""


ClockRequest = Measure | Timer | Leased
ClockReport = NeedTimers | LeaseWanted | Measured | Alive
JUDGE_REQUESTS: msgspec.msgpack.Decoder[JudgeRequest | ClockRequest] = msgspec.msgpack.Decoder(
    JudgeRequest | ClockRequest, dec_hook=text_to_path
)
"""All that the judge's process hears from the engine: the clock runs in it."""
CLOCK_REPORTS: msgspec.msgpack.Decoder[ClockReport] = msgspec.msgpack.Decoder(ClockReport)
