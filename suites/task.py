"""What a task is: the data of `task.toml`, and nothing that needs torch."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec


class Distribution(StrEnum):
    """How the values of a case are drawn."""

    STANDARD = "standard"
    OUTLIER = "outlier"


class Allowance(StrEnum):
    """What a kernel must take besides dense, finite inputs: hidden cases give it what its task allows."""

    OFFSET = "offset"
    """Dense inputs that begin inside their storage, at a multiple of 16 bytes."""
    UNALIGNED = "unaligned"
    """Dense inputs that begin inside their storage, one element past such a multiple."""
    NON_CONTIGUOUS = "non-contiguous"
    """Inputs with other strides: transposed storage, padded rows, every second element."""
    SPECIAL_VALUES = "special-values"
    """A NaN and both infinities among the values of floating-point inputs."""
    DEGENERATE_ROWS = "degenerate-rows"
    """Rows of zeros, of equal, tiny, large and negative values, with one that outweighs all others or the largest one twice."""


FINDINGS = {
    "out_of_bounds": "loads outside their tensor; stores there always refuse",
    "uninitialised": "loads of memory that nothing had written",
    "race": "an outcome that depends on the order of programs or lanes",
    "false_promise": "a `tl.multiple_of` that does not hold",
    "not_replayed": "a call that cannot be repeated by its kernels alone",
    "gpu_sizes": "fewer distinct bytes at `gpu` sizes than inputs and outputs hold, by an estimate",
    "not_deterministic": "equal inputs gave other bits",
}
"""Kinds of findings, which a task may be `strict` about."""


class Cost(NamedTuple):
    """What one case asks of any device, however well it is solved; what `cost.py` returns."""

    flops: int
    """Floating-point operations by the task's model (a multiply-add is two)."""
    minimal_bytes: int
    """Each input read once and each output written once, in bytes."""
    dot_dtype: str | None = None
    """Dtype of the matrix products (`float16`, `int8`, ...), `None` where the work is not matrix products."""


class Axis(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes that a kernel must take along one axis; hidden cases have others than the open ones within them."""

    min: int = 1
    """The smallest; 0 where a kernel must take inputs without elements."""
    multiple_of: int = 1
    vary: bool = True
    """`false`: no other sizes than those of the task's own cases."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One input configuration of a task."""

    name: str
    dtype: str
    """Name of a torch dtype, as `float32`; what it means for each input is `problem.py`'s to say."""
    cpu: dict[str, int]
    """Sizes on device `cpu`: small enough for the interpreter."""
    gpu: dict[str, int]
    """Sizes on a GPU, and those that launches are specialised at when they are compiled for a target."""
    distribution: Distribution = Distribution.STANDARD
    exam: bool = False
    """Judged at the end of an instance alone; nothing about it, nor its result, reaches a prompt."""


class Tolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Element-wise: right when |got - expected| is at most the sum of what each key allows; all 0 is exact.

    `rms` is the root mean square of the output's expected values. The model behind `accumulation`: sums of `reduction`
    random terms in float32, whose rounding errors grow with the root of their number (Higham and Mary, 2019).
    """

    rtol: float = 0.0
    """rtol * |expected|."""
    atol: float = 0.0
    ulps: float = 0.0
    """Times the distance of neighbouring values of the output's dtype around `expected`, subnormal ones too: 0.5 is one
    right rounding."""
    accumulation: float = 0.0
    """accumulation * 2**-24 * sqrt(size of the axis `reduction`) * rms."""
    reduction: str = ""
    """Axis of the case's sizes that is summed over."""
    tf32: bool = False
    """Whether float32 products of matrix units may round their operands to TF32: 4 * 2**-10 * rms more, on devices that
    have it, never on `cpu`."""


class QuantizationTolerance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The metrics that judge a quantization task, over a whole output (source: KernelBench-X)."""

    cosine_min: float
    relative_l1_max: float
    """Sum of |got - expected| over sum of |expected|."""
    rmse_max: float
    """Root mean square error over the root mean square of the expected values."""
    worst_max: float | None = None
    """Largest |got - expected|, less half a unit in the last place of the output's dtype, over the root mean square of the expected values:
    what the others lose in a large output. One right rounding is free, as a large element's may be more than others are worth."""
    probe: Tolerance | None = None
    """Judges, element by element, the inputs of `probe_inputs` in `problem.py`, which tell quantized work from unquantized."""


class EntryPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A function that the candidate must define."""

    name: str
    signature: str
    """As Python writes it, defaults included: `layer_norm(x, weight, bias, eps=1e-5)`."""


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One tensor that the entry point returns."""

    name: str
    dtype: str = "input"
    """A torch dtype's name, or `input` for the case's dtype."""
    tolerances: dict[str, Tolerance] = {}
    """By the output's dtype, in place of the task's."""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to solve. `suite` and `folder` are filled in by the loader; all else stands in `task.toml`."""

    schema: int
    name: str
    title: str
    category: str
    """One of KernelBench-X's fifteen categories."""
    difficulty: int
    """1 (an element-wise kernel) to 5."""
    instruction: str
    """What the generator is asked for, in Markdown."""
    entry_points: tuple[EntryPoint, ...]
    outputs: tuple[Output, ...]
    cases: tuple[Case, ...]
    baseline: str = "triton"
    """What `baseline.py` is written in; named beside every speedup."""
    tolerances: dict[str, Tolerance] = {}
    """By the output's dtype. Integers and booleans are compared exactly."""
    quantization: QuantizationTolerance | None = None
    """When set, it judges instead of `tolerances`."""
    outlier_inputs: tuple[str, ...] = ()
    """Inputs into which an `outlier` case puts outliers."""
    allowed_operators: tuple[str, ...] = ()
    """Tensor operators that may compute outside the candidate's kernels; allocation and views always may."""
    in_place: tuple[str, ...] = ()
    """Inputs that the task wants changed."""
    allows: tuple[Allowance, ...] = (Allowance.OFFSET,)
    """Which inputs hidden cases may give beyond dense and finite ones."""
    strict: tuple[str, ...] = ()
    """Kinds of findings that refuse a candidate of this task; see `FINDINGS`."""
    axes: dict[str, Axis] = {}
    """Sizes that hidden cases may have, by axis. An axis left out keeps within what the open cases show."""
    suite: str = ""
    folder: Path = Path()

    @property
    def id(self) -> str:
        """The task's full name, `suite/task`."""
        return f"{self.suite}/{self.name}"

    @property
    def at_gpu_sizes(self) -> Task:
        """The same task with the sizes of a GPU on every device."""
        cases = tuple(msgspec.structs.replace(case, cpu=case.gpu) for case in self.cases)
        return msgspec.structs.replace(self, cases=cases)

    @property
    def open_cases(self) -> tuple[Case, ...]:
        """The cases that prompts, feedback and every evaluation but the exam are about."""
        return tuple(case for case in self.cases if not case.exam)

    @property
    def exam_cases(self) -> tuple[Case, ...]:
        """The cases that the task's author keeps for the exam; none: the judge derives some."""
        return tuple(case for case in self.cases if case.exam)

    @property
    def short_id(self) -> str:
        """The name as people type it: tasks of `starter` need no prefix."""
        return self.name if self.suite == "starter" else self.id
