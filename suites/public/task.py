"""`PublicTask`: a task of a public benchmark, read from a person's clone. Nothing here needs torch.

A public task has no list of cases. It has a test: a script that calls the entry points. The judge runs the test with the
reference, records the calls of the entry points, and judges a candidate on the recorded calls.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from suites.task import QuantizationTolerance, TextEnum, Tolerance


class SuiteKind(TextEnum):
    """Formats of public benchmarks; a clone's files decide its kind."""

    TRITONBENCH_REVISED = "tritonbench-revised"
    ROCM = "rocm"
    TRITONBENCH_G = "tritonbench-g"
    TRITONBENCH_T = "tritonbench-t"
    KERNELBENCH_X = "kernelbench-x"
    KERNELBENCH = "kernelbench"
    ROBUST_KBENCH = "robust-kbench"
    AGENTKERNELARENA = "agentkernelarena"
    GPU_MODE = "gpu-mode"
    ATREX_BENCH = "atrex-bench"
    GEAK_TASKS = "geak-tasks"
    FLASHINFER_TRACE = "flashinfer-trace"
    SOL_EXECBENCH = "sol-execbench"


class ReferenceKind(TextEnum):
    """Kinds of reference."""

    TRITON = "triton"
    """Triton kernels and their host code: a baseline, and a candidate that must be judged correct."""
    TORCH = "torch"
    """A PyTorch function with the entry point's name: the oracle."""
    MODULE = "module"
    """A class `Model(nn.Module)`: the oracle. A candidate defines `ModelNew`."""


class TestForm(TextEnum):
    """How a test calls the entry points."""

    __test__ = False  # pytest must not collect the class

    SCRIPT = "script"
    """The test runs when reference and test are executed as one module. It leaves its results in `result_name`."""
    PYTEST = "pytest"
    """`test_*` functions with pytest's parameters, in one module with the reference. `test_performance` and
    `test_save_*` are no tests. Results by test node are in the dictionary `result_name`."""
    RUNNER = "runner"
    """A script of its own that imports the reference or loads its file by path. The judge calls its function `runner`, or
    runs it as a program with `arguments`. As a program it may write files beside itself."""
    MODEL = "model"
    """The reference has a class `Model`. Without a test, `get_inputs()` and `get_init_inputs()` give its arguments. A test
    prepares inputs and calls the entry points. Integers above 8 are sizes, and the judge makes them smaller."""


class EntryKind(TextEnum):
    """Kinds of names that the test calls."""

    FUNCTION = "function"
    KERNEL = "kernel"
    """A `@triton.jit` function that the test launches: `name[grid](...)`."""
    CLASS = "class"
    """A class: `nn.Module`, `torch.autograd.Function`, or plain. The test makes instances or calls `name.apply`."""
    VALUE = "value"
    """A module-level name that is called but assigned: `attention = _Attention.apply`."""


class Issue(TextEnum):
    """Known issues of a task; `ISSUES` has a sentence for each."""

    WEAK_ORACLE = "weak-oracle"
    SCALAR_ORACLE = "scalar-oracle"
    NAN_REFERENCE = "nan-reference"
    HIP_LIBDEVICE = "hip-libdevice"
    BLOCK_POINTERS = "block-pointers"
    NETWORK = "network"
    RANDOM = "random"
    NO_TENSORS = "no-tensors"
    OWN_COPY = "own-copy"
    DEGENERATE = "degenerate"


ISSUES: dict[Issue, str] = {
    Issue.WEAK_ORACLE: "The suite's own test returns only shapes, booleans or strings; wrong values pass it.",
    Issue.SCALAR_ORACLE: "The suite's own test returns only scalars and shapes; most wrong values pass it.",
    Issue.NAN_REFERENCE: "The reference returns NaN in some case; NaN is compared by place.",
    Issue.HIP_LIBDEVICE: "The reference uses tl.extra.hip.libdevice: it runs on AMD GPUs only.",
    Issue.BLOCK_POINTERS: "The reference uses tl.make_block_ptr, which Triton 3.9 removed: it needs an older Triton.",
    Issue.NETWORK: "The reference loads weights from the network.",
    Issue.RANDOM: "The reference can draw random numbers: a candidate may draw others.",
    Issue.NO_TENSORS: "The suite's own test compares settings of an optimizer and no tensor.",
    Issue.OWN_COPY: "The suite's own test replaces the entry point with a copy of the reference: no candidate fails it.",
    Issue.DEGENERATE: "The benchmark's own filter flags it: its outputs hardly depend on the inputs, or hardly differ.",
}


class PublicEntryPoint(msgspec.Struct, frozen=True):
    """A name of the reference that the test calls; a candidate must define it."""

    name: str
    kind: EntryKind
    signature: str = ""
    """Python signature with annotations and defaults, as the reference has it; `*` and `/` are possible. Of an autograd
    function `name.apply(...)`, of another class its constructor. Empty if unknown."""


class Part(msgspec.Struct, frozen=True):
    """A part of a file, or a whole file."""

    path: Path
    text: str
    line: int = 1
    """Number of the part's first line in the file."""


class PublicTask(msgspec.Struct, frozen=True):
    """A task of a public benchmark."""

    suite: str
    """Name under which the clone was added."""
    kind: SuiteKind
    name: str
    """Name inside the suite, as `NAME` in `suites.task_rules` wants it (lower case)."""
    file: str
    """The suite's own name of the task: predictions and published tables use it (`matmul.py`, `Math/abs.py`)."""
    title: str
    folder: Path
    """Root of the clone."""
    instruction: str = ""
    entry_points: tuple[PublicEntryPoint, ...] = ()
    """Names that the test calls, in the order of their first use. At least one, except if `unsupported` is set."""
    reference: Part | None = None
    """Kernel part, without the test. `None` only if `unsupported` is set."""
    reference_kind: ReferenceKind = ReferenceKind.TRITON
    test: Part | None = None
    """Test part, without the kernel part. May be `None` for `MODEL`, or if `unsupported` is set."""
    test_form: TestForm = TestForm.SCRIPT
    result_name: str = ""
    """Global with the test's results: `result_gold` or `test_results`; empty for `RUNNER` and `MODEL`."""
    runner: str = ""
    """For `RUNNER`: the function that tests correctness; empty if it needs arguments."""
    arguments: tuple[str, ...] = ()
    """For `RUNNER`: the program's command-line arguments for a test of correctness."""
    modules: tuple[str, ...] = ()
    """Names under which the test may import the reference as a module."""
    oracles: tuple[str, ...] = ()
    """PyTorch functions in test or reference that compute the truth (`reference_x`, `torch_x`, `ref_x`). Their parameters may
    differ from the entry point's. If empty, the reference's outputs are the truth."""
    performance: Part | None = None
    """Source of the inputs for timing: a class `performance_metrics`, or `test_performance` inside `test` (then `None`)."""
    search_paths: tuple[Path, ...] = ()
    """Folders that the test needs on `sys.path`."""
    difficulty: int | None = None
    """1 to 5 by the suite; `None` if the suite has none."""
    category: str = ""
    """The suite's category; empty if the suite has none."""
    tolerances: dict[str, Tolerance] = {}
    """Tolerances by the output's dtype. Other dtypes are compared exactly."""
    quantization: QuantizationTolerance | None = None
    """If set, it replaces `tolerances`."""
    widths: dict[str, int] = {}
    """Bits of the quantized `weight` and `activation`, if the suite states them."""
    vendor: str = ""
    """`amd` or `nvidia` if the reference runs on GPUs of this vendor only."""
    issues: tuple[Issue, ...] = ()
    gives_reference: bool = False
    """The benchmark gives the reference to the model, as a kernel to improve."""
    unsupported: str = ""
    """Why the task cannot be judged; empty if it can."""

    @property
    def asks_for_reference(self) -> bool:
        """True if the benchmark asks for the kernel that the reference is, and does not show it."""
        return (
            self.reference is not None
            and self.reference_kind is ReferenceKind.TRITON
            and not self.gives_reference
            and self.reference.text.strip() not in self.instruction
        )

    @property
    def id(self) -> str:
        """Full name, `suite/task`."""
        return f"{self.suite}/{self.name}"

    @property
    def script(self) -> str:
        """The reference and the test as one module text, for `SCRIPT` and `PYTEST`."""
        return "\n".join(part.text for part in (self.reference, self.test) if part is not None)
