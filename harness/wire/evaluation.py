"""What the harness says of a candidate: plain data that crosses processes and is kept on disk."""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from .latency import DeviceState, Latency, RoughTime

SCHEMA = 1
STAGES = ("static", "call", "compile", "execution", "integrity", "performance")


class Verdict(StrEnum):
    """The judge's answer, one word."""

    CORRECT = "correct"
    WRONG = "wrong"
    COMPILE_ERROR = "compile_error"
    CALL_ERROR = "call_error"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    CRASH = "crash"
    NO_CODE = "no_code"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"
    INFRA_ERROR = "infra_error"

    @property
    def counted(self) -> bool:
        """Whether metrics count it: what this device cannot say, and what is our fault, are not counted."""
        return self not in (Verdict.UNSUPPORTED, Verdict.CANCELLED, Verdict.INFRA_ERROR)


class Stage(msgspec.Struct, frozen=True):
    """One stage of the cascade."""

    name: str
    """One of `STAGES`."""
    ok: bool | None
    """`None`: not reached, or not applicable on this device."""
    seconds: float
    """Wall time, by a monotonic clock."""
    detail: str = ""
    """One line for people."""


class StageEntered(msgspec.Struct, frozen=True):
    """Told while a candidate is judged: a stage begins."""

    stage: str
    device: str


class StageLeft(msgspec.Struct, frozen=True):
    """Told while a candidate is judged: a stage is over."""

    stage: Stage
    device: str


class Mismatch(msgspec.Struct, frozen=True):
    """Where and by how much an output is wrong."""

    case: str
    output: str
    index: tuple[int, ...]
    expected: str
    got: str
    """Printed with enough digits to tell them apart; text, so that NaN and Inf survive JSON."""
    max_abs: float | None
    max_rel: float | None
    """Over the elements that are finite on both sides; `None` when there is none."""
    wrong_share: float
    """Share of wrong elements, 0 to 1."""
    nan_got: int
    nan_expected: int
    inf_got: int
    inf_expected: int
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    dtype: str
    expected_dtype: str
    metrics: dict[str, float] = {}
    """Of a quantization task: `cosine`, `relative_l1`, `rmse`, `worst`, as judged."""


class ErrorReport(msgspec.Struct, frozen=True):
    """Why the cascade stopped, in words a kernel author can act on."""

    kind: str
    """A short stable word: `syntax`, `missing_entry_point`, `exception`, `mismatch`, `compile`, `out_of_bounds`, ..."""
    message: str
    trace: str = ""
    """Frames of the candidate's own module, as Python prints them; the module is called `kernel.py`."""
    line: int | None = None
    """The candidate's own line, 1-based."""
    mismatch: Mismatch | None = None


_LINE = re.compile(r"line (\d+)")


def line_in(message: str) -> int | None:
    """The first line number that a message names."""
    line = _LINE.search(message)
    return int(line[1]) if line else None


class Finding(msgspec.Struct, frozen=True):
    """Possible harm that does not refuse by itself; a task raises it by its kind in `strict`."""

    kind: str
    """One of `suites.task.FINDINGS`; `interpreter_<error kind>` where a GPU judged and the interpreter would have refused."""
    message: str
    case: str = ""
    """Where it was seen first; empty where it is of no one case."""
    line: int | None = None
    """The candidate's own line, 1-based."""

    @property
    def text(self) -> str:
        """One line for people and models."""
        where = f"case {self.case}: " if self.case else ""
        return f"{self.kind.replace('_', ' ')}: {where}{self.message}"


class GridFit(msgspec.Struct, frozen=True):
    """How a launch's workgroups fill the target's reference device, if all take equally long. Arithmetic, not measured."""

    case: str
    grid: tuple[int, int, int]
    workgroups: int
    compute_units: int
    """Of the device: compute units (AMD) or multiprocessors (NVIDIA)."""
    per_unit: int
    """Workgroups that one of them holds at once, by registers, local memory and wave limits; at least 1."""
    rounds: int
    """Times that the fullest die is filled, the last time perhaps in part."""
    tail_idle: float
    """Share of the device's places for workgroups that are empty in the last round, 0 to 1."""
    idle: float
    """Share of places that are empty over all rounds."""
    idle_units: int
    """Compute units that have no workgroup at all in the last round."""
    dies: int
    """Over which workgroups go round robin (XCDs of an MI300X); 1 where there is one."""
    die_most: int
    die_least: int
    """Workgroups of the die with the most and with the least of them."""


class KernelResources(msgspec.Struct, frozen=True):
    """One kernel compiled for one target at one specialisation. Counts the target does not have are `None`."""

    kernel: str
    case: str
    """The case whose `gpu` sizes the launch was specialised at."""
    config: dict[str, str]
    """Compile-time constants and launch options, printed."""
    autotune_index: int | None
    """Place among the configs of an autotuned kernel."""
    binary: str
    """Architecture found in the binary itself, as `gfx942`: the proof that it is that target's."""
    binary_sha256: str
    grid: tuple[int, int, int] | None
    vgprs: int | None = None
    """Vector registers a lane, accumulation registers included (source: the code object's metadata)."""
    agprs: int | None = None
    sgprs: int | None = None
    registers: int | None = None
    """Registers a thread (NVIDIA)."""
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    spill_bytes: int | None = None
    """Spill stores and loads a thread in bytes (NVIDIA)."""
    scratch_bytes: int | None = None
    lds_bytes: int | None = None
    """Local (shared) memory a workgroup."""
    occupancy: float | None = None
    """Waves a SIMD (AMD) or warps an SM (NVIDIA) that fit, by registers, local memory and wave limits."""
    occupancy_limit: str | None = None
    """What limits it: `vgprs`, `lds`, `waves`, `registers`, `shared`, ..."""
    matrix_instructions: int | None = None
    load_widths: dict[str, int] = {}
    """Global loads by width in bits, counted in the assembly."""
    local_loads: int | None = None
    """Of these, the ones that go to local memory past the registers: buffer loads to LDS, `cp.async`."""
    tile_loads: int | None = None
    """Besides, copies of tiles to shared memory whose size stands in a descriptor (TMA)."""
    compile_seconds: float | None = None
    notes: tuple[str, ...] = ()
    fits: tuple[GridFit, ...] = ()
    """Of each grid that this code is launched on, in order."""
    flags: tuple[str, ...] = ()
    """What speaks against this config: `spills`, `too_large` (for the device; the autotuner drops it), `failed`."""
    failure: str = ""
    """Why there is no binary (`failed`) or it cannot run (`too_large`). Without a binary its fields are empty."""
    code_sha256: str = ""
    """Of the binary without debug information, in which paths stand: equal for equal code."""


class Traffic(msgspec.Struct, frozen=True):
    """What the interpreter counted over one case at its `cpu` sizes (bytes, exact; not what a cache lets through)."""

    case: str
    sizes: dict[str, int]
    requested_read_bytes: int
    requested_write_bytes: int
    unique_read_bytes: int
    unique_write_bytes: int
    minimal_bytes: int
    """By the task's cost model."""
    dot_flops: int
    flops: int
    """By the task's cost model."""
    launches: int
    programs: int


class SampledTraffic(msgspec.Struct, frozen=True):
    """
    What one case asks of memory at its `gpu` sizes, from some programs of each launch: an estimate, in bytes.

    Only addresses and masks were computed. Distinct bytes are those of each launch, added up over launches; what caches
    let through lies between `minimal_bytes` and what is requested.
    """

    case: str
    sizes: dict[str, int]
    target: str
    """As which the host code saw the device."""
    launches: int
    programs: int
    sampled: int
    """Programs that ran, of `programs`; all of them: the counts are exact."""
    requested_read_bytes: int
    requested_write_bytes: int
    """Every unmasked lane of every access; the mean of the sampled programs, by their place in the grid, for all."""
    requested_low_bytes: int
    requested_high_bytes: int
    """Reads and writes, had every program asked for as little or as much as any sampled one of its place."""
    unique_low_bytes: int
    unique_high_bytes: int
    """Distinct bytes: seen in the sample at least, at most by the sizes of the tensors and what programs touch."""
    die_bytes: int
    """Distinct bytes of each die, all dies together, at most, where all share as the sampled neighbours on a die do."""
    dies: int
    """Over which programs go round robin (XCDs)."""
    group: int
    """Neighbours on one die that were sampled."""
    minimal_bytes: int
    flops: int
    """By the task's cost model."""
    dot_flops: int
    out_of_bounds: tuple[str, ...] = ()
    """Accesses outside their tensor at these sizes, of sampled programs: offsets that overflow, for one."""
    remarks: tuple[str, ...] = ()
    """Where distinct bytes are bounds only, as addresses depend on data."""
    moved_bytes: int = 0
    """Results of copies that the host made: kernels may work on them in place of inputs, and in place."""


class Estimate(msgspec.Struct, frozen=True):
    """A roofline estimate between two bounds, never a measurement."""

    target: str
    case: str
    sizes: dict[str, int]
    low_us: float
    """Minimal bytes and the cost model's FLOPs at the device's peaks: nothing can be faster."""
    high_us: float
    """Requested bytes at peak bandwidth (every access to memory, no cache) and counted FLOPs."""
    bound_low: str
    bound_high: str
    """`memory` or `compute`: which side of the roofline each bound lies on."""
    basis: str
    """Peaks and sizes used, and how many programs were sampled, for people."""
    shared_us: float | None = None
    """Between the two: distinct bytes of each die at peak bandwidth, if its cache keeps what its neighbours share."""
    product: str = ""
    """Whose peaks: `H200 SXM`."""
    of_device: bool = False
    """Whether the device of the evaluation is this product; else it is the target's reference, and no time measured on the device
    may be held against it."""


class Layer(msgspec.Struct, frozen=True):
    """One layer of the guest's sandbox."""

    name: str
    state: str
    """`active`, `absent` or `failed`."""
    why: str = ""


class Basis(StrEnum):
    """Why a fact is believed."""

    PROOF = "proof"
    """The judge compared bytes, or the kernel told: wall and CPU time, the process tree."""
    EVIDENCE = "evidence"
    """It was learned inside the guest, where foreign code runs."""


class Fact(msgspec.Struct, frozen=True):
    """One thing that is known of a candidate beside its verdict."""

    name: str
    value: str
    basis: Basis


class Margin(msgspec.Struct, frozen=True):
    """How close one output of one case came to its tolerance."""

    case: str
    output: str
    measure: str
    """`elementwise`, `exact`, or the metric of a quantization task: `cosine`, `relative_l1`, `rmse`, `worst`."""
    used: float
    """Share of the tolerance used by the worst element or by the metric: 0 is exact, above 1 is wrong."""
    index: tuple[int, ...] = ()
    """Of the worst element, where the measure has one."""


class Weakness(msgspec.Struct, frozen=True):
    """One way in which a task's oracle does not tell right from wrong."""

    case: str
    output: str
    """Empty where it is not about one output."""
    control: str
    """The wrong answer that is accepted, `input NAME` for an input that makes no difference, `truth` where the right
    answer is none."""
    problem: str
    """In words."""


class Evaluation(msgspec.Struct, frozen=True):
    """All that the harness says of a candidate."""

    schema: int
    task: str
    device: str
    verdict: Verdict
    call: bool
    """It imported and ran every case it was given without an error."""
    execution: bool
    """Its outputs matched on every case."""
    stages: tuple[Stage, ...]
    """Always six, in the order of `STAGES`."""
    error: ErrorReport | None = None
    latency: tuple[Latency, ...] = ()
    rough: tuple[RoughTime, ...] = ()
    """In place of latencies where a rough effort was asked for: estimates. Such an evaluation is no verdict to keep: its stages
    before timing are the interpreter's alone."""
    speedup: float | None = None
    """Mean over cases of the ratio of medians (GEAK), over those that have a ratio; `None` where none has, and where an open case
    has no latency: the speedup over some cases is not the task's."""
    speedup_geomean: float | None = None
    not_timed: tuple[str, ...] = ()
    """Open cases without a latency, where others have one; of several GPUs, each with its GPU."""
    device_before: DeviceState | None = None
    """Of the GPU that was timed."""
    device_after: DeviceState | None = None
    resources: dict[str, tuple[KernelResources, ...]] = {}
    """By target."""
    compile_errors: dict[str, str] = {}
    """By target, where a launch did not compile."""
    traffic: tuple[Traffic, ...] = ()
    sampled: tuple[SampledTraffic, ...] = ()
    """At `gpu` sizes, of a correct candidate."""
    not_sampled: dict[str, str] = {}
    """By case, why nothing is known of its bytes at `gpu` sizes; its estimate is then of its `cpu` sizes."""
    estimate: tuple[Estimate, ...] = ()
    sandbox: tuple[Layer, ...] = ()
    versions: dict[str, str] = {}
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    """Merely odd things, for people."""
    facts: tuple[Fact, ...] = ()
    """What is known beside the verdict, each with why it is believed."""
    margins: tuple[Margin, ...] = ()
    """Of each case and output that was compared, in their order."""
    exam: bool = False
    """Whether the exam cases were judged, which reach no feedback, in place of the open ones."""
    printed: str = ""
    """Tail of what the candidate printed; shown, never parsed."""

    @property
    def in_part(self) -> str:
        """`not whole: 5 of 7 cases`, as to timing; empty where every open case has a latency, or none has."""
        if not self.not_timed:
            return ""
        timed = len(self.latency)
        return f"not whole: {timed} of {timed + len(self.not_timed)} cases"


EVALUATION_DECODER: msgspec.json.Decoder[Evaluation] = msgspec.json.Decoder(Evaluation)
