"""Messages between the engine and the clock, which times a correct candidate in the judge's process. Torch-free.

`Effort` limits what the timing of one candidate may cost: a full latency, or a few samples to rank the variants of one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.wire.channels.channel import text_to_path
from harness.wire.limits import TimeLimits
from harness.wire.results import ratios
from harness.wire.results.evaluation import ErrorReport
from harness.wire.results.latency import TimingMethod
from harness.wire.results.served_calls import ServedCall
from suites.task import Task

from .guest import Alive
from .judge import JudgeRequest, TurnWanted
from .timer import TapedCall

BASELINE, CANDIDATE = "baseline", "candidate"
SIDES = (BASELINE, CANDIDATE)
PLAYERS = ratios.PAIRS_A_LOOK
"""Processes of a GPU that play the launch tapes of baseline and candidate, for one timing after the other: one for each pair."""


class Effort(msgspec.Struct, frozen=True):
    """The clock's budget for one candidate."""

    pairs: int = ratios.PAIRS_A_LOOK
    """Pairs of a baseline and a candidate, per look: each in a process of its own."""
    looks: int = ratios.LOOKS
    """At most so many looks, each in new players."""
    least_looks: int = 1
    least_rounds: int = 3
    most_rounds: int = 15
    """Bounds for the blocks of samples that each process takes."""
    budget_s: float = 30.0
    """For all cases and looks together, under the exclusive lease."""
    sustained: bool = False
    """Time plain calls without pause too, about two seconds per case and side."""
    rough: bool = False
    """The result is an estimate: no interval, no confirmation from outside the guest."""


WHOLE = Effort()
EXAM = Effort(least_looks=ratios.LOOKS)
"""For the timing that confirms a speedup: six processes."""
SUSTAINED = Effort(sustained=True, budget_s=120.0)
"""For `wavedeck eval --sustained`."""
ROUGH = (
    Effort(pairs=1, looks=1, least_rounds=1, most_rounds=1, budget_s=5.0, rough=True),
    Effort(pairs=2, looks=1, least_rounds=1, most_rounds=3, budget_s=15.0, rough=True),
)
"""Rungs of a sweep, cheapest first. The second takes up to six times the samples of the first, in new processes."""


class Measure(msgspec.Struct, frozen=True, tag="measure"):
    """Time a candidate that was just judged correct, against the timing baseline."""

    task: Task
    sources: dict[str, str]
    seed: int
    target: str
    limits: TimeLimits
    cold: bool
    against: str
    flush_bytes: int
    budget_s: float
    """For all cases together, once the device is leased."""
    effort: Effort = WHOLE
    matmul_dtype: str = ""
    """Dtype of the matrix product that the device is measured with; empty if the task has no matrix products."""
    new_floor: bool = False
    """Measure the device's floor again, because the device was disturbed when it was measured."""
    graph_nodes: int | None = None
    """The largest graph that worked on this device, in calls; 0 if none did, `None` if that was not measured."""
    baseline_calls: dict[str, TapedCall] = {}
    """Calls of the baseline that an earlier timing recorded, by case; empty: this timing records them."""


class Timer(msgspec.Struct, frozen=True, tag="timer"):
    """One process to time in. Descriptor: the clock's end of its channel."""

    side: str
    """Empty for a player."""
    pid: int
    served: bool = False
    """A player that earlier timings used: it said hello before."""


class NeedTimers(msgspec.Struct, frozen=True, tag="need_timers"):
    """The clock needs `count` processes of each side; the engine answers with one `Timer` for each.

    Without sides it needs players, once it has the device.
    """

    sides: tuple[str, ...]
    count: int


class BaselineRecorded(msgspec.Struct, frozen=True, tag="baseline_recorded"):
    """The baseline's calls, for later timings; the engine answers with `Proceed`. Its recorder lives until then."""

    calls: dict[str, TapedCall]


class Block(msgspec.Struct, frozen=True):
    """Samples that one process took in a row, in milliseconds of one call; times by `time.monotonic`."""

    began_s: float
    ended_s: float
    samples_ms: tuple[float, ...]


class ProcessTimes(msgspec.Struct, frozen=True):
    """The times of one process for one case; all but the blocks by the clock's own watch."""

    side: str
    pair: int
    case: str
    blocks: tuple[Block, ...]
    wall_ms: float | None
    """One call: of a graph replayed many times; else of calls with all work around them, less the work around them."""
    plain_ms: float | None
    peak_bytes: int
    configs: dict[str, str]
    method: TimingMethod = TimingMethod.EVENTS
    launches: int = 0
    """Calls in the series that was timed together; 0: calls were timed between events."""
    cold: bool = True
    """The caches did not hold the inputs."""
    sustained_ms: float | None = None
    """A plain call, after a second of plain calls."""
    taped: bool = False
    """The launches of a tape were timed, in a process that never saw the source."""
    host_ms: float = 0.0
    """The host's time to launch one call, as the timer reports it."""
    clock_mhz: int | None = None
    """Median clock of the device in these blocks. Telemetry adds it, `None` if unknown."""


class Floor(msgspec.Struct, frozen=True):
    """What the device and the clock on it can resolve."""

    empty_ms: float
    """An empty kernel between two events."""
    copies: tuple[tuple[int, float, float], ...]
    """Bytes copied; bytes a second (read and written) with cold and with hot caches."""
    graph_ms: float | None = None
    """An empty kernel in a graph of many; `None` if the device captures no graph."""
    batch_ms: float | None = None
    """An empty kernel among many back to back."""
    matmul_flops_per_s: float | None = None
    """FLOP/s of a large matrix product by torch in `Measure.matmul_dtype`."""

    def empty_by(self, method: TimingMethod) -> float:
        """An empty kernel's time, by this method, in milliseconds; by events, which take longest, if it is not known."""
        return {TimingMethod.GRAPH: self.graph_ms, TimingMethod.BATCH: self.batch_ms}.get(
            method
        ) or self.empty_ms


def method_of(times: Iterable[ProcessTimes]) -> TimingMethod:
    """How these processes were timed, which is the same for all of a case."""
    return next((process.method for process in times), TimingMethod.EVENTS)


class Taped(msgspec.Struct, frozen=True):
    """Result of the candidate's launch tape of a case."""

    case: str
    launches: int = 0
    code: tuple[str, ...] = ()
    why_not: str = ""
    """Why there is no tape; empty if the tape was played, with right outputs."""


class Measured(msgspec.Struct, frozen=True, tag="measured"):
    """The result of a timing."""

    times: tuple[ProcessTimes, ...]
    floor: Floor | None
    tapes: tuple[Taped, ...] = ()
    served: tuple[ServedCall, ...] = ()
    """The candidate's calls by case."""
    confirmed_outputs: int = 0
    """Outputs of timed calls that match the oracle."""
    written_bytes: dict[str, int] = {}
    """Size of a call's outputs, by case."""
    error: ErrorReport | None = None
    """Why the candidate is not correct, if timing found that."""
    problem: str = ""
    """Why not everything was timed, if that is not the candidate's fault."""
    ended: str = ""
    """The side of a timer that ended when it should have answered; the engine knows how it ended."""
    why_method: dict[str, str] = {}
    """Why short cases were not timed by the first clock of the ladder, or not at the first try, by case."""
    seconds: dict[str, float] = {}
    not_shared: str = ""
    """Why inputs went through host memory; empty if they did not."""
    players_reusable: bool = False
    """The players answered each request, and wait for the next timing."""
    tapes_played: int = 0


ClockRequest = Measure | Timer
ClockReport = NeedTimers | BaselineRecorded | TurnWanted | Measured | Alive
JUDGE_REQUESTS: msgspec.msgpack.Decoder[JudgeRequest | ClockRequest] = msgspec.msgpack.Decoder(
    JudgeRequest | ClockRequest, dec_hook=text_to_path
)
"""Every request to the judge's process, in which the clock runs too."""
CLOCK_REPORTS: msgspec.msgpack.Decoder[ClockReport] = msgspec.msgpack.Decoder(ClockReport)
