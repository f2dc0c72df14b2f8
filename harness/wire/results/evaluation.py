"""The result of an evaluation: plain data that crosses processes and is kept on disk. `docs/data.md` lists the keys."""

from __future__ import annotations

import re

import msgspec

from suites.task import TextEnum

from .kernel_counts import CodeCounts
from .latency import DeviceReading, Latency, RoughTime
from .provenance import Provenance
from .served_calls import BatchRows, ServedCall

SCHEMA = 1
STAGES = ("static", "call", "compile", "execution", "integrity", "performance")
_MOST_CHARACTERS = 400
"""Length of an error in one line."""
_MANY_TIMES = 1e6
"""A larger error in units of the tolerance says no more: the tolerance of a tiny value is tiny."""


class Verdict(TextEnum):
    """The judge's verdict."""

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
        """Whether metrics count it. Cases that this device cannot judge and faults of the harness do not count."""
        return self not in (Verdict.UNSUPPORTED, Verdict.CANCELLED, Verdict.INFRA_ERROR)

    @property
    def is_failure(self) -> bool:
        """True if metrics count it and it is not *correct*."""
        return self.counted and self is not Verdict.CORRECT


class Stage(msgspec.Struct, frozen=True):
    """One stage of the cascade."""

    name: str
    ok: bool | None
    """`None`: not reached, or not applicable on this device."""
    seconds: float
    detail: str = ""
    cases: tuple[int, int] | None = None
    """The cases that passed, and all cases; `None` if the stage counts no cases."""


class StageEvent(msgspec.Struct, frozen=True):
    """Event during an evaluation: a stage begins or ends."""

    stage: str
    device: str
    result: Stage | None = None
    """The stage that ended; `None`: it begins."""


class Mismatch(msgspec.Struct, frozen=True):
    """How an output differs from the oracle's."""

    case: str
    output: str
    index: tuple[int, ...]
    expected: str
    got: str
    """Both values with enough digits to see the difference; text, so that NaN and Inf survive JSON."""
    max_abs: float | None
    """The largest error of elements that are finite on both sides; `None` if there are none."""
    wrong_share: float
    nan_got: int
    nan_expected: int
    inf_got: int
    inf_expected: int
    shape: tuple[int, ...]
    expected_shape: tuple[int, ...]
    dtype: str
    expected_dtype: str
    metrics: dict[str, float] = {}
    used: float | None = None
    """The largest error of finite elements, or the worst of the metrics, in units of its tolerance; `None` if exact values are
    expected."""
    off: str = ""
    """How far the output is off, and how far careful arithmetic is; empty if the task states its tolerances."""
    pattern: tuple[str, ...] = ()
    """Sentences about the wrong elements: their common property, their places, and an example with its neighbours and inputs."""
    common: str = ""
    """The common property of the wrong elements, if it is known: the first sentence of the pattern."""

    @property
    def largest_error(self) -> str:
        """The largest error in words: `10.24, 12.4 times the tolerance`; empty if NaN and Inf alone are wrong."""
        if self.used is not None and self.used <= 1:
            return ""  # NaN and Inf alone are wrong
        over = "" if self.used is None else f"{_times(self.used)} times the tolerance"
        if self.metrics:
            return f"the worst of its metrics is {over}" if over else ""
        return ", ".join(filter(None, ("" if self.max_abs is None else f"{self.max_abs:.4g}", over)))


def _times(factor: float) -> str:
    if factor >= _MANY_TIMES:
        return "over a million"
    return f"{factor:,.0f}" if factor >= 100 else f"{factor:.3g}"


class ErrorReport(msgspec.Struct, frozen=True):
    """Why the evaluation stopped, for the author of the kernel."""

    kind: str
    """A short stable word: `syntax`, `missing_entry_point`, `exception`, `mismatch`, `compile`, `out_of_bounds`, ..."""
    message: str
    trace: str = ""
    line: int | None = None
    mismatch: Mismatch | None = None
    further: tuple[str, ...] = ()
    """A line for each other output and case that fails; similar ones are grouped if there are many."""
    cases: str = ""
    """Which cases fail and which pass, and what only the failing ones have in common; empty if unknown."""
    target: str = ""
    """The target that kernels were not compiled for; empty for other errors, and if host code failed or values are wrong too."""
    place: str = ""
    """The place at which the candidate's process ended or was too slow: `case fp32`, `the import`; empty for other errors."""

    @property
    def first_line(self) -> str:
        """The first line of the message, for places that have one line."""
        return self.message.partition("\n")[0]

    @property
    def in_one_line(self) -> str:
        """The first line of the message, and what the wrong elements of a wrong output have in common."""
        common = "" if self.mismatch is None else self.mismatch.common
        line = "; ".join(filter(None, (self.first_line, common)))
        return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."

    def with_further(self, further: tuple[str, ...], cases: str) -> ErrorReport:
        """Return the error with lines for other outputs and cases that fail, and a last line that says which cases fail."""
        message = "\n".join(filter(None, (self.message, *further, cases)))
        return msgspec.structs.replace(self, message=message, further=further, cases=cases)


_LINE = re.compile(r"line (\d+)")


def line_in(message: str) -> int | None:
    """Return the first line number in a message."""
    line = _LINE.search(message)
    return int(line[1]) if line else None


class Finding(msgspec.Struct, frozen=True):
    """A possible bug that refuses a candidate only if the task lists its kind in `strict`."""

    kind: str
    """One of `suites.task.FINDINGS`, or `interpreter_<error kind>` if a GPU judged and the interpreter would have refused."""
    message: str
    case: str = ""
    """The first case with this finding; empty if it has no case."""
    line: int | None = None

    @property
    def text(self) -> str:
        """One line for users and models."""
        where = f"case {self.case}: " if self.case else ""
        return f"{self.kind.replace('_', ' ')}: {where}{self.message}"


class GridFit(msgspec.Struct, frozen=True):
    """How a launch's workgroups fill the target's reference device if all take equally long; calculated, not measured."""

    case: str
    grid: tuple[int, int, int]
    workgroups: int
    compute_units: int
    """Compute units (AMD) or multiprocessors (NVIDIA) of the device."""
    per_unit: int
    """Workgroups that a compute unit holds at once, by registers, local memory and wave limits; at least 1."""
    rounds: int
    """How often the fullest die is filled; the last round may be partial."""
    tail_idle: float
    """Share of the device's workgroup places that are empty in the last round, 0 to 1."""
    idle: float
    idle_units: int
    dies: int
    die_most: int
    die_least: int
    """Workgroups of the fullest and of the emptiest die."""


class KernelResources(msgspec.Struct, frozen=True):
    """One kernel compiled for one target at one specialisation; `None` for counts that the target does not have."""

    kernel: str
    case: str
    """The launch is specialised for this case at `gpu` sizes."""
    config: dict[str, str]
    autotune_index: int | None
    architecture: str = msgspec.field(name="binary")
    """Architecture that the binary itself names (`gfx942`), as proof of the target; empty without a binary."""
    binary_sha256: str
    grid: tuple[int, int, int] | None
    vgprs: int | None = None
    """Vector registers per lane with accumulation registers (source: the code object's metadata)."""
    agprs: int | None = None
    sgprs: int | None = None
    registers: int | None = None
    vgpr_spills: int | None = None
    sgpr_spills: int | None = None
    spill_bytes: int | None = None
    scratch_bytes: int | None = None
    lds_bytes: int | None = None
    occupancy: float | None = None
    """Waves per SIMD (AMD) or warps per SM (NVIDIA) that fit, by registers, local memory and wave limits."""
    occupancy_limit: str | None = None
    matrix_instructions: int | None = None
    load_widths: dict[str, int] = {}
    """Number of global loads in the assembly by width in bits."""
    local_loads: int | None = None
    """Those global loads that bypass registers into local memory: buffer loads to LDS, `cp.async`."""
    tile_loads: int | None = None
    """Copies of tiles to shared memory by a descriptor (TMA), not in `load_widths`."""
    compile_seconds: float | None = None
    notes: tuple[str, ...] = ()
    fits: tuple[GridFit, ...] = ()
    flags: tuple[str, ...] = ()
    failure: str = ""
    """Why there is no binary (`failed`) or why it cannot run (`too_large`). Without a binary its fields are empty."""
    code_sha256: str = ""
    """Digest of the binary without debug information, which contains paths; equal for equal code."""
    code: CodeCounts | None = None
    """The whole kernel's instructions; `None` in evaluations of older versions, and without a binary."""
    loops: tuple[CodeCounts, ...] = ()
    texts: dict[str, str] = {}
    """SHA-256 of each compiler text that a session keeps, compressed, by its name: `ttgir`, `llir`, `amdgcn`, `ptx`, `sass`."""
    texts_left_out: dict[str, str] = {}
    """Why a text is not kept, by its name."""
    autotune_config: str = ""
    """The config of an autotuned kernel as Triton prints it, which `Latency.configs` names; empty in older evaluations."""

    @property
    def cases(self) -> list[str]:
        """The cases that are known to launch this code."""
        return list(dict.fromkeys([self.case, *(fit.case for fit in self.fits)]))


class Traffic(msgspec.Struct, frozen=True):
    """The interpreter's exact counts for one case at its `cpu` sizes, in bytes, without any cache; and the work that it needs."""

    case: str
    requested_read_bytes: int = 0
    requested_write_bytes: int = 0
    unique_read_bytes: int = 0
    unique_write_bytes: int = 0
    dot_flops: int = 0
    launches: int = 0
    programs: int = 0
    sizes: dict[str, int] = {}
    """These and the fields below are known to the engine only."""
    minimal_bytes: int = 0
    flops: int = 0
    needed_bytes: int = 0
    """See `FullSize.needed_bytes`, here at the `cpu` sizes; 0: unknown, then `minimal_bytes` counts."""

    @property
    def requested_bytes(self) -> int:
        """Bytes of all reads and writes; repeated bytes count again."""
        return self.requested_read_bytes + self.requested_write_bytes

    @property
    def excess(self) -> float | None:
        """Requested over needed bytes, at least 1; `None` if the needed bytes are unknown."""
        needed_bytes = self.needed_bytes or self.minimal_bytes
        return max(1.0, self.requested_bytes / needed_bytes) if needed_bytes else None


class FullSize(msgspec.Struct, frozen=True):
    """A case at its `gpu` sizes."""

    case: str
    sizes: dict[str, int]
    needed_bytes: int = 0
    """The bytes that every kernel moves, or those that memory moves while the FLOPs run, if more; both at the first target's
    peaks. 0: unknown."""
    is_long: bool = False
    """Whether memory needs longer for these bytes than a launch takes."""


class Layer(msgspec.Struct, frozen=True):
    """One layer of the guest's sandbox."""

    name: str
    state: str
    why: str = ""


class Basis(TextEnum):
    """Why a fact is believed."""

    PROOF = "proof"
    """The judge compared bytes, or the operating system reported it: wall and CPU time, the process tree."""
    EVIDENCE = "evidence"
    """It comes from inside the guest, where foreign code runs."""


class Fact(msgspec.Struct, frozen=True):
    """One fact about a candidate, in addition to its verdict."""

    name: str
    value: str
    basis: Basis


class Margin(msgspec.Struct, frozen=True):
    """How close one output of one case came to its tolerance."""

    case: str
    output: str
    measure: str
    used: float
    index: tuple[int, ...] = ()


class Weakness(msgspec.Struct, frozen=True):
    """A wrong answer that a task's oracle accepts, or a correct one that it refuses."""

    case: str
    output: str
    control: str
    """The accepted wrong answer; `input NAME` for an input without effect; `truth` if the correct answer is refused."""
    problem: str


class Evaluation(msgspec.Struct, frozen=True):
    """The harness's result for a candidate."""

    schema: int
    task: str
    device: str
    """Empty if the text was refused before a device was chosen."""
    verdict: Verdict
    call: bool
    execution: bool
    stages: tuple[Stage, ...]
    error: ErrorReport | None = None
    latency: tuple[Latency, ...] = ()
    rough: tuple[RoughTime, ...] = ()
    """Estimates, which replace latencies at a rough effort. Such an evaluation is no final verdict: only the interpreter ran
    before timing."""
    speedup: float | None = None
    """Mean over the cases that have a ratio (GEAK). `None` if no case has one, or if a person chose the cases."""
    speedup_ci: tuple[float, float] | None = None
    """95 % interval of this mean over the cases with an exact ratio (no bound), from processes and samples of all cases together.
    `None` if there is no such case."""
    speedup_geomean: float | None = None
    speedup_geomean_ci: tuple[float, float] | None = None
    """The same of the geometric mean."""
    speedup_weighted_ci: tuple[float, float] | None = None
    """The same of the time-weighted mean; `None` if the cases have no weights."""
    case_weights: dict[str, float] = {}
    """Weight of each open case, if the task has weights."""
    not_timed: tuple[str, ...] = ()
    """Open cases without a latency if others have one."""
    why_not_timed: str = ""
    """Why the cases in `not_timed` have no latency, or why nothing was timed; empty if unknown, as in older evaluations."""
    device_before: DeviceReading | None = None
    device_after: DeviceReading | None = None
    resources: dict[str, tuple[KernelResources, ...]] = {}
    compile_errors: dict[str, str] = {}
    traffic: tuple[Traffic, ...] = ()
    full_sizes: tuple[FullSize, ...] = msgspec.field(default=(), name="sampled")
    """One for each entry of `traffic`. The key is that of older evaluations, which had other figures beside the sizes."""
    not_sampled: dict[str, str] = {}
    """Why no program of a case was run at its `gpu` sizes, by case."""
    raised_at_full_sizes: tuple[str, ...] = ()
    """The cases in `not_sampled` in which host code raised an exception."""
    sandbox: tuple[Layer, ...] = ()
    provenance: Provenance | None = None
    """`None` in evaluations of older versions, and if no device was chosen."""
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    judged_again: bool = False
    """The judge judged twice by itself: the first time a process or a node was lost."""
    facts: tuple[Fact, ...] = ()
    weak_oracle: str = ""
    """The first wrong answers that the task's oracle accepts, in words; empty if it accepts none, and in older evaluations."""
    margins: tuple[Margin, ...] = ()
    serving: tuple[ServedCall, ...] = ()
    """Facts that serving needs, one entry for each open case; empty without a timing on a GPU."""
    batch_rows: tuple[BatchRows, ...] = ()
    """One for each dtype, or one that says why nothing was compared; empty without a GPU."""
    exam: bool = False
    """Whether the exam cases were judged, which reach no feedback, and not the open ones."""
    printed: str = ""
    only_cases: tuple[str, ...] = ()
    """Open cases that a person chose: no other case ran, so the verdict is none about the task. Empty: all cases ran."""

    @property
    def in_part(self) -> str:
        """`5 of 7 cases` if only some open cases have a ratio; empty if all have one, or none was timed."""
        count = len(self.latency) + len(self.not_timed)
        return f"{self.speedup_cases} of {count} cases" if self.speedup_cases < count else ""

    @property
    def speedup_cases(self) -> int:
        """Number of cases with a ratio, which `speedup` and `speedup_geomean` cover."""
        return sum(latency.speedup is not None for latency in self.latency)
