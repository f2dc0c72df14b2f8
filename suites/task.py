"""The data of a `task.toml` as structs. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from suites.errors import UnknownCase
from suites.source.package import Package, PackageView


class TextEnum(str, Enum):  # noqa: UP042
    """Members are texts, also where they are formatted. `enum.StrEnum` is missing in Python 3.10, which may run the judge."""

    __str__ = str.__str__


class Distribution(TextEnum):
    """Distribution of the random values of a case."""

    STANDARD = "standard"
    OUTLIER = "outlier"


class Allowance(TextEnum):
    """Kinds of inputs beyond dense, finite ones. Hidden cases use the kinds that the task allows."""

    OFFSET = "offset"
    """Dense inputs that begin inside their storage, at a multiple of 16 bytes."""
    UNALIGNED = "unaligned"
    """Dense inputs that begin inside their storage, one element past such a multiple."""
    NON_CONTIGUOUS = "non-contiguous"
    """Inputs with other strides: transposed storage, padded rows, every second element."""
    SPECIAL_VALUES = "special-values"
    """A NaN and both infinities among the values of floating-point inputs."""
    DEGENERATE_ROWS = "degenerate-rows"
    """Rows of zeros, of equal, tiny, large or negative values, rows with one dominant value, or with the largest value twice."""


FINDINGS = {
    "out_of_bounds": "loads outside their tensor; stores there always refuse",
    "uninitialised": "loads of memory that nothing had written",
    "undefined_lanes": "an output that is right only if masked loads without `other` give 0 there",
    "false_promise": "a `tl.multiple_of` or `tl.assume` that does not hold",
    "gpu_sizes": "fewer distinct bytes at `gpu` sizes than inputs and outputs hold, by three programs of each launch",
    "not_deterministic": "equal inputs gave other bits",
    "weak": "errors beyond careful arithmetic that the task allows, or TF32",
}
"""Kinds of findings that a task may list in `strict`."""
REQUIREMENTS = {
    "no_graph": "a call that no CUDA or HIP graph holds",
    "host_waits": "a call in which the host waits for the device",
    "batch_dependent": "rows of a batch with other bits than the same rows alone",
}
"""Obstacles to serving that a task may list in `strict` besides findings; measured on a GPU."""


class Cost(NamedTuple):
    """Least work of a case on any device; the return value of `cost.py`."""

    flops: int
    """Floating-point operations by the task's model; a multiply-add counts as two."""
    minimal_bytes: int
    """Each input read once and each output written once, in bytes."""
    dot_dtype: str | None = None
    """Dtype of the matrix products (`float16`, `int8`, ...); `None` without matrix products."""
    estimated_bytes: int | None = None
    """Estimate of the bytes that every kernel moves, where only a part, `minimal_bytes`, is certain; 0: not known. `None`:
    `minimal_bytes` are all."""
    uncounted_products: bool = False
    """The case multiplies matrices, and `flops` leaves these operations out: its bytes are no roof of its time."""

    @property
    def moved_bytes(self) -> int:
        """Bytes for roofs and shares: the estimate if there is one; 0 if they are not known."""
        return self.minimal_bytes if self.estimated_bytes is None else self.estimated_bytes


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes that a kernel must accept along one axis. Hidden cases use further sizes in this range."""

    min: int = 1
    """Smallest size; 0 means that a kernel must accept inputs without elements."""
    max: int | None = None
    """Largest size; `None`: a size may be larger than those of the task's cases."""
    multiple_of: int = 1
    vary: bool = True
    """`false`: only the sizes of the task's own cases."""


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Element-wise tolerance: |got - expected| may be at most the sum of the terms below; all 0 means exact.

    `rms` is the root mean square of the output's expected values. `accumulation` models sums of `reduction` random terms in
    float32: their rounding errors grow with the square root of the number of terms (Higham and Mary, 2019).
    """

    rtol: float = 0.0
    """rtol * |expected|."""
    atol: float = 0.0
    ulps: float = 0.0
    """Units in the last place of the output's dtype at `expected`, also for subnormals; 0.5 is one correct rounding."""
    scale: float = 0.0
    """scale * median of |expected| over the elements that are neither 0 nor infinite; of the inputs if `expected` is all 0."""
    accumulation: float = 0.0
    """accumulation * 2**-24 * sqrt(size of the axis `reduction`) * rms."""
    reduction: str = ""
    """Name of the axis of the sum."""
    measured: bool = False
    """True: the errors of careful arithmetic, measured with the oracle; the other terms are allowed beyond them."""
    cosine: float = 0.0
    """Smallest cosine with the exact values that makes an output right, whatever its size; needs `measured`. 0: none."""
    tf32: bool = False
    """True: float32 matrix products may round their operands to TF32. Adds 4 * 2**-10 * rms on devices with TF32."""


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor that the entry point returns."""

    name: str
    dtype: str = "input"
    """Name of a torch dtype, or `input` for the case's dtype."""
    tolerances: dict[str, Tolerance] = {}
    """Tolerances by the output's dtype; they override the task's tolerances."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input configuration of a task."""

    name: str
    dtype: str
    """Name of a torch dtype such as `float32`; `problem.py` decides its meaning for each input."""
    cpu: dict[str, int]
    """Sizes on device `cpu`: small enough for the interpreter."""
    gpu: dict[str, int]
    """Sizes on a GPU. Launches compiled for a target are specialised for these sizes."""
    distribution: Distribution = Distribution.STANDARD
    exam: bool = False
    """True: judged only at the end of an instance. Neither the case nor its result reaches a prompt."""
    outputs: tuple[Output, ...] = ()
    """Outputs of this case, if they differ from the task's."""
    weight: float = 0.0
    """Time that a program spends in such calls, in any unit: only shares count. Either every open case has one, or none."""
    only_gpu: bool = False
    """Its inputs are too large for the interpreter: judged on a GPU only."""
    no_baseline: str = ""
    """Why the baseline does not do the work of this case, so that nothing is timed in it; empty if it does."""


class QuantizationTolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Metrics that judge a quantization task, over a whole output (source: KernelBench-X)."""

    cosine_min: float
    relative_l1_max: float
    """Sum of |got - expected| over sum of |expected|."""
    rmse_max: float
    """Root mean square error over the root mean square of the expected values."""
    worst_max: float | None = None
    """Largest |got - expected| over the root mean square of the expected values. The other metrics miss a single wrong
    element of a large output. Half a unit in the last place is subtracted first: one correct rounding is free."""
    probe: Tolerance | None = None
    """Element-wise tolerance for the inputs of `probe_inputs` in `problem.py`, which reveal unquantized work."""


class EntryPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the candidate must define."""

    name: str
    signature: str
    """Python signature with defaults: `layer_norm(x, weight, bias, eps=1e-5)`."""


class RecordedScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Cases that are calls of a script: the judge runs it, records its calls, and judges a candidate on the same calls.

    The folder then holds `script.json` (the script's text) and `calls.py`, which is appended to a candidate: a function
    that makes each call and returns its outputs.
    """

    signature: str
    """Signature of the function in `calls.py`; its first parameter is the number of the call."""
    oracle: str = "baseline"
    """`baseline`: the outputs of the script's own kernels are right. Else the name of the script's PyTorch function."""
    digest: str = ""
    """Digest of the benchmark's texts that were recorded."""
    notes: tuple[str, ...] = ()
    """What a person should know: calls and values that are not judged."""
    on_gpu: bool = False
    """It was recorded on a GPU, with the benchmark's inputs for timing."""
    hides_baseline: bool = False
    """The baseline is the answer that the benchmark asks for: prompts do not show its source."""
    multiplies: bool = False
    """The reference multiplies matrices in some call."""
    signatures: tuple[str, ...] = ()
    """How the script calls the entry points, with annotations and every default; empty: as in `entry_points`."""
    examples: tuple[str, ...] = ()
    """Some values of a call, one line per tensor. Only for references that prompts do not show."""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task. The loader fills in `suite` and `folder`; all other fields come from `task.toml`."""

    schema: int
    name: str
    title: str
    category: str
    """One of KernelBench-X's fifteen categories."""
    difficulty: int
    """1 (an element-wise kernel) to 5."""
    instruction: str
    """Instruction for the generator, in Markdown."""
    entry_points: tuple[EntryPoint, ...]
    outputs: tuple[Output, ...]
    cases: tuple[Case, ...]
    baseline: str = "triton"
    """Language of `baseline.py`; shown with every speedup."""
    original: str = ""
    """Path of the file that `baseline.py` is a copy of, from the root of its repository; empty if it is not known."""
    tolerances: dict[str, Tolerance] = {}
    """Tolerances by the output's dtype. Integers and booleans are compared exactly."""
    quantization: QuantizationTolerance | None = None
    """If set, it replaces `tolerances`."""
    outlier_inputs: tuple[str, ...] = ()
    """Inputs that get outliers in an `outlier` case."""
    allowed_operators: tuple[str, ...] = ()
    """Tensor operators that may compute outside the candidate's kernels. Allocation and views are always allowed."""
    returns: tuple[str, ...] = ()
    """Parts of the returned tuple: names of outputs, and an empty text for `None` or a number, which the oracle returns at the
    same place. Empty: the outputs are the result."""
    in_place: tuple[str, ...] = ()
    """Inputs that the kernel must change. Those among the outputs need not be returned."""
    allows: tuple[Allowance, ...] = (Allowance.OFFSET,)
    """Kinds of inputs in hidden cases beyond dense, finite inputs."""
    strict: tuple[str, ...] = ()
    """Kinds of `FINDINGS` and `REQUIREMENTS` that refuse a candidate."""
    max_host_us: float | None = None
    """A call that needs more microseconds of the host refuses a candidate on a GPU; `None`: no limit."""
    axes: dict[str, Axis] = {}
    """Sizes of hidden cases by axis. An axis without entry stays in the range of the open cases."""
    script: RecordedScript | None = None
    """Set if the cases are calls of a script and not made by `problem.py`."""
    package: Package | None = None
    """The package that a candidate is a module of; `None`: a candidate is one module."""
    suite: str = ""
    folder: Path = Path()

    @property
    def id(self) -> str:
        """Full name, `suite/task`."""
        return f"{self.suite}/{self.name}"

    def outputs_of(self, case: Case) -> tuple[Output, ...]:
        """Return the outputs of a case: its own, else the task's."""
        return case.outputs or self.outputs

    def changed_inputs_of(self, case: Case) -> tuple[str, ...]:
        """Return by output the name of the input that becomes this output, or an empty string; empty if no output is an input."""
        names = tuple(output.name if output.name in self.in_place else "" for output in self.outputs_of(case))
        return names if any(names) else ()

    def with_cases(self, names: Sequence[str]) -> Task:
        """Return the task with only these of its open cases; `UnknownCase` if it has no such case."""
        cases = [case.name for case in self.open_cases]
        for name in names:
            if name not in cases:
                raise UnknownCase(name, task=self.short_id, cases=cases)
        return msgspec.structs.replace(
            self, cases=tuple(case for case in self.open_cases if case.name in names)
        )

    @property
    def is_measured(self) -> bool:
        """True if the oracle is a function in the dtypes of its inputs, and gives a measure of right errors too."""
        return any(tolerance.measured for tolerance in self.tolerances.values())

    @property
    def package_view(self) -> PackageView | None:
        """The part of the package that workers see, as its folders are now; `None` without a package."""
        return None if self.package is None else self.package.view(self.folder)

    @property
    def open_cases(self) -> tuple[Case, ...]:
        """Cases of prompts, feedback and every evaluation except the exam."""
        return tuple(case for case in self.cases if not case.exam)

    @property
    def timed_cases(self) -> tuple[Case, ...]:
        """Open cases in which the baseline does its work."""
        return tuple(case for case in self.open_cases if not case.no_baseline)

    @property
    def shares(self) -> dict[str, float]:
        """Weight of each open case by name, as shares of 1; empty if the cases have none."""
        whole = sum(case.weight for case in self.open_cases)
        return {case.name: case.weight / whole for case in self.open_cases} if whole else {}

    @property
    def exam_cases(self) -> tuple[Case, ...]:
        """Cases of the exam; if empty, the judge derives exam cases."""
        return tuple(case for case in self.cases if case.exam)

    @property
    def short_id(self) -> str:
        """Short name for users: tasks of `starter` have no prefix."""
        return self.name if self.suite == "starter" else self.id
