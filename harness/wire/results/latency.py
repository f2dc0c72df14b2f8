"""The timing of one case on one device: plain data that crosses processes and is kept on disk.

`docs/data.md` lists the keys.
"""

from __future__ import annotations

import msgspec

from suites.task import TextEnum


class Outcome(TextEnum):
    """The conclusion that an interval allows about two kernels."""

    FASTER = "faster"
    SLOWER = "slower"
    NOT_RESOLVED = "not resolved"
    TOO_SHORT = "too short"
    """Both sides are near an empty kernel's time on this device; there is no ratio."""


class TimingMethod(TextEnum):
    """How the calls of both sides were timed."""

    GRAPH = "graph"
    """Many calls in one graph, or in several, each on its own inputs, between two events: for short kernels."""
    BATCH = "batch"
    """The same calls back to back between two events, without a graph."""
    PROFILER = "profiler"
    """The same calls, by the profiler's timestamps of their kernels."""
    EVENTS = "events"
    """Each call between two events, which add some microseconds to it."""


class Bound(TextEnum):
    """How a ratio relates to the true speedup.

    The clock adds an empty kernel's time to both sides. If only one side is short, that pulls the ratio towards 1.
    """

    NONE = ""
    AT_LEAST = "at least"
    AT_MOST = "at most"

    @property
    def sign(self) -> str:
        """Sign before a figure: `>=`, `<=`, or nothing."""
        return {Bound.AT_LEAST: ">=", Bound.AT_MOST: "<="}.get(self, "")


class Timed(msgspec.Struct, frozen=True):
    """One side of a pair in one case. Device times are of one call, in milliseconds."""

    median_ms: float
    p10_ms: float
    p90_ms: float
    samples: int
    """Calls between two events each; or replays of a graph, each the mean of its calls."""
    left_out: int = 0
    """Samples that do not count: at another clock than the rest of the case, or another process used the device."""
    processes: int = 1
    plain_ms: float | None = None
    """Median wall time of a plain call, back to back with hot caches; includes launch overhead."""
    peak_bytes: int | None = None
    sustained_ms: float | None = None
    """Mean wall time of a plain call after a second of such calls, with the device's clock under this load."""
    clock_mhz: int | None = None
    """Median clock of the device while the samples that count were taken."""
    median_error: float | None = None
    """Relative standard error of the least known median of a process."""


class RoughTime(msgspec.Struct, frozen=True):
    """An estimate of one case from few samples, for a sweep's rungs. It is shown as an estimate everywhere."""

    device: str
    case: str
    ratio: float | None
    """Time of the base kernel over the variant's; `None` if both are too short for a ratio."""
    candidate_ms: float
    samples: int
    pairs: int
    against: str


class Efficiency(msgspec.Struct, frozen=True):
    """A case's share of its device's peaks: bytes and FLOPs by the task's cost model, time measured. 0: not known."""

    product: str
    bytes: int
    flops: int
    dtype: str
    bytes_per_s: float
    flops_per_s: float
    io_utilisation: float | None
    """Share of peak bandwidth; KernelBench-X calls it IOU."""
    mfu: float | None
    io_measured: float | None = None
    """Share of the fastest cold copy that was measured on this device in this session: the practical roof of memory."""
    mfu_measured: float | None = None
    """Share of a large matrix product by torch that was measured likewise: the practical roof of compute."""
    io_achievable: float | None = None
    mfu_achievable: float | None = None
    suspect: str = ""
    """Why a share above the hardware's limit is wrong; empty if none is above."""

    @property
    def best(self) -> float | None:
        """max(IOU, MFU), as in KernelBench-X; `None` if neither is known."""
        shares = [share for share in (self.io_utilisation, self.mfu) if share is not None]
        return max(shares, default=None)


class Window(msgspec.Struct, frozen=True):
    """Telemetry during the first look of a timing; `None` for a value that the device does not report, never 0."""

    source: str
    seconds: float
    clock_mhz: int | None = None
    clock_usual_mhz: int | None = None
    hotspot_c: float | None = None
    memory_c: float | None = None
    power_w: float | None = None
    throttled: dict[str, float] = {}
    """Reasons that held the clock back, with their share of the window or the growth of the driver's counter."""
    other_processes: int | None = None
    """The highest number of other processes on the device, busy or not."""


class DeviceReading(msgspec.Struct, frozen=True):
    """A device before or after timing; `None` for a value that it does not report."""

    busy_percent: float | None = None
    memory_used_bytes: int | None = None
    other_processes: int | None = None
    clock_mhz: int | None = None
    hotspot_c: float | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None


class Latency(msgspec.Struct, frozen=True):
    """One case timed on one device against the timing baseline, in pairs of processes, interleaved in one run."""

    device: str
    case: str
    baseline_ms: float
    candidate_ms: float
    speedup: float | None
    """Baseline over candidate; `None` if both are too short for a ratio."""
    ci: tuple[float, float] | None
    """95 % interval of the speedup, over pairs of processes."""
    confirmed: str
    """Why the time can be trusted.

    `tape`: a process played the candidate's launches that never saw its source. Else the candidate's own process took the time:
    the clock's wall time agrees (`wall`), or is an upper bound (`bound`).
    """
    outcome: Outcome = Outcome.NOT_RESOLVED
    against: str = ""
    cache: str = "cold"
    method: TimingMethod = TimingMethod.EVENTS
    pairs: int = 0
    floor_ms: float | None = None
    """An empty kernel's time by the same method on this device, in this session."""
    baseline: Timed | None = None
    candidate: Timed | None = None
    wall_ms: float | None = None
    """Time of a call by the judge's own clock, which the guest cannot reach; a bound if `confirmed` is `bound`."""
    efficiency: Efficiency | None = None
    window: Window | None = None
    configs: dict[str, str] = {}
    """The config that an autotuned kernel chose under the lease and was timed with, by kernel."""
    bound: Bound = Bound.NONE
    """`at least` if the candidate is too short to be timed exactly, `at most` if the baseline is."""
    without_floor: float | None = None
    """The speedup with `floor_ms` subtracted from both sides; `None` for a bound, and if the floor is unknown."""
    notes: tuple[str, ...] = ()
    """Limits of this time and ratio that the interval does not show, a clause each."""
