"""What timing says of one case on one device: plain data that crosses processes and is kept on disk."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """What an interval allows to say of two kernels."""

    FASTER = "faster"
    SLOWER = "slower"
    NOT_RESOLVED = "not resolved"
    TOO_SHORT = "too short"
    """Below `FLOORS` times what an empty kernel takes on this device: no ratio is given."""


class Timed(msgspec.Struct, frozen=True):
    """One side of a pair over one case. Times of the device are between two events around a call, in milliseconds."""

    median_ms: float
    p10_ms: float
    p90_ms: float
    samples: int
    """That were kept, over all processes."""
    left_out: int = 0
    """Taken while the clock had dropped or another process used the device, and not counted."""
    processes: int = 1
    plain_ms: float | None = None
    """Median wall time of a plain call back to back, caches hot: launch overhead shows here."""
    graph_ms: float | None = None
    """The same calls replayed as a graph, each; `None` where they cannot be captured."""
    peak_bytes: int | None = None
    """The most device memory that a call allocated beyond its inputs."""
    energy_mj: float | None = None
    """Millijoules a call, where the device counts energy: of the whole device, over plain calls back to back with caches as these
    leave them - not of the samples, between which caches are emptied."""


class RoughTime(msgspec.Struct, frozen=True):
    """An estimate of one case from few samples, as a sweep's rungs ask for it. Called an estimate wherever it is shown."""

    device: str
    case: str
    ratio: float | None
    """The kernel that is varied over the variant; `None` where either is too short for a ratio."""
    candidate_ms: float
    """Median of the few samples."""
    samples: int
    """Of the variant, over all its processes."""
    pairs: int
    against: str
    """Whose time the ratio is of."""


class Efficiency(msgspec.Struct, frozen=True):
    """What a case achieved of its device's peaks: bytes and FLOPs by the task's cost model, time measured."""

    product: str
    """Whose peaks: `H200 SXM`."""
    bytes: int
    flops: int
    dtype: str
    """Of the matrix or vector peak that `flops` go against."""
    bytes_per_s: float
    flops_per_s: float
    io_utilisation: float | None
    """Of peak bandwidth; KernelBench-X calls it IOU."""
    mfu: float | None
    io_achievable: float | None = None
    """Of the bandwidth that the vendor publishes as achieved, where it does."""
    mfu_achievable: float | None = None
    suspect: str = ""
    """Why the figure is above what the hardware can do; empty where it is not."""

    @property
    def best(self) -> float | None:
        """max(IOU, MFU), as KernelBench-X has it; `None` where neither is known."""
        known = [each for each in (self.io_utilisation, self.mfu) if each is not None]
        return max(known, default=None)


class Window(msgspec.Struct, frozen=True):
    """What the device told of itself while it was timed. What it does not tell is `None`, never 0."""

    source: str
    """`nvml`, `amdsmi`, `sysfs`; empty where nothing tells."""
    seconds: float
    clock_mhz: int | None = None
    """The lowest that was seen of any of the chip's clocks."""
    clock_usual_mhz: int | None = None
    """The median of what was seen."""
    hotspot_c: float | None = None
    memory_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    throttled: dict[str, float] = {}
    """What held the clock back, with the share of the window or the growth of the driver's counter."""
    other_processes: int | None = None
    """The most processes of others that were seen on the device, at work or not."""


class DeviceState(msgspec.Struct, frozen=True):
    """A device as it was found before or left after timing. What it does not tell is `None`."""

    product: str = ""
    address: str = ""
    driver: str = ""
    partition: str = ""
    """Compute and memory partition mode (`SPX/NPS1`) or MIG profile; empty where there is none."""
    power_cap_w: float | None = None
    busy_percent: float | None = None
    memory_used_bytes: int | None = None
    other_processes: int | None = None
    clock_mhz: int | None = None
    hotspot_c: float | None = None
    memory_total_bytes: int | None = None
    power_w: float | None = None
    energy_j: float | None = None
    """By the device's own counter, from wherever it starts."""


class Latency(msgspec.Struct, frozen=True):
    """One case timed on one device against the timing baseline, in pairs of processes, interleaved in one run."""

    device: str
    case: str
    baseline_ms: float
    candidate_ms: float
    speedup: float | None
    """Baseline over candidate; `None` where the kernels are too short for a ratio."""
    ci: tuple[float, float] | None
    """95 % interval of the speedup, over pairs of processes."""
    confirmed: str
    """How the event time was confirmed from outside the guest: `graph`, `wall` or `bound`."""
    outcome: Outcome = Outcome.NOT_RESOLVED
    against: str = ""
    """The timing baseline by name: `triton` or `torch` (the task's own), `eager`, `compile`, `best`."""
    cache: str = "cold"
    """State of the device's caches before each sample: `cold` or `hot`."""
    pairs: int = 0
    floor_ms: float | None = None
    """What an empty kernel takes between the same two events on this device, in this session."""
    baseline: Timed | None = None
    candidate: Timed | None = None
    wall_ms: float | None = None
    """A call by the judge's own clock, which the guest cannot reach: a bound where `confirmed` is `bound`."""
    rival_ms: float | None = None
    """The best so far of the same instance, timed in the same run."""
    rival_speedup: float | None = None
    rival_ci: tuple[float, float] | None = None
    efficiency: Efficiency | None = None
    window: Window | None = None
    configs: dict[str, str] = {}
    """The config that an autotuned kernel chose in the lease and was timed with, by kernel."""
