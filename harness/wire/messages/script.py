"""Messages to and from a script worker, which runs a public benchmark's test and records its calls. Torch-free."""

from __future__ import annotations

import msgspec

from harness.wire.calls.tensors import TensorSpec

SCRIPT_FILE, CALLS_FILE, EXPRESSIONS_FILE = "script.json", "calls.py", "calls.json"
"""Files of a recorded task: the script, the text that is appended to a candidate, and the place of each call in the script."""
ADAPTER = "wavedeck_call"
"""Name of the function in `calls.py`."""
DRAW_SEED = "draw_seed"
"""Parameter of that function: the seed of a call that draws random numbers."""
CALL = "call"
"""First parameter of that function: the number of the call."""
RESULT = "result"
"""Name of a call's return value in `calls.py`."""
GRADIENTS = "gradients"
"""Name of the gradients of the inputs in `calls.py`."""
MODEL_SEED = 0
"""Seed of torch's generators while a model is built. One seed for all, as a candidate may draw its parameters itself."""
NAN, LIKE_RESULTS = 0, 2
"""Kinds of fresh memory in two runs with the same values, see `harness/worker/kit/poison.py`. Elements that differ are not
judged. Very large values do not fit: a sum with them overflows, and then both runs give NaN."""
MOST_OPEN = 0.1
"""Share of a call's results that may be undefined in its reference. A kernel that does all the work is slower by about this."""
NUMBER = "\0"
"""Place of a number in `RecordedCall.returns`."""
RESERVED = frozenset({RESULT, GRADIENTS, DRAW_SEED, "torch"})
"""Names in `calls.py` that no input may have."""


class Script(msgspec.Struct, frozen=True):
    """A script that calls entry points."""

    reference: str
    """The module that defines the entry points."""
    test: str
    """Text that runs in the reference's namespace and calls the entry points."""
    entry_points: tuple[str, ...]
    test_file: str = "test.py"
    """Where the test lies in its folder."""
    reference_file: str = ""
    """Where the test finds the reference as a file; empty if test and reference are one module."""
    modules: tuple[str, ...] = ()
    """Names under which the test may import the reference."""
    helpers: dict[str, str] = {}
    """Texts of the benchmark's own modules that the test imports, by file name."""
    runner: str = ""
    """Function of the test to call; empty if executing the test makes the calls."""
    arguments: tuple[str, ...] | None = None
    """Command-line arguments of a test that runs as a program; `None` if it is a module."""
    is_pytest: bool = False
    """The test has pytest's form."""
    nodes: tuple[str, ...] = ()
    """Nodes of a test in pytest's form that are run, in this order; empty: the worker chooses."""
    calls: int = 0
    """The script ends after so many calls; 0: at its own end."""
    has_kernels: bool = True
    """The reference computes in Triton kernels; tensors that only its host code fills are not judged."""
    builds_models: bool = False
    """The entry point is a class `ModelNew`. Its instances are built with the seed `MODEL_SEED`, and a call has their
    parameters as inputs."""
    unsettled: bool = False
    """Some outputs depend on memory that nothing wrote. Such elements are not judged."""
    performance: str = ""
    """Module with a class `performance_metrics`, the benchmark's inputs for timing; or text that makes the call for timing
    itself, in the reference's namespace. Only GPUs run it."""
    widths: dict[str, int] = {}
    """Bits of the quantized `weight` and `activation`, where the truth is the result without quantization."""
    oracle: str = ""
    """PyTorch function in `test` that takes an entry point's arguments and returns the truth; empty: the entry point's
    own outputs are the truth."""


class RunScript(msgspec.Struct, frozen=True, tag="run_script"):
    """Run the script with all random numbers drawn from `seed`."""

    script: Script
    seed: int
    target: str
    poison: int = NAN
    """Content of fresh memory in the calls, see `harness/worker/kit/poison.py`."""
    counts_bytes: bool = False
    """Count the bytes that each call moves."""
    budget_s: float = 0.0
    """In the first run, CPU seconds in which the worker chooses nodes, or after which it ends the script. 0: no limit."""


class RecordedOutput(msgspec.Struct, frozen=True):
    """A tensor that a call computed."""

    name: str
    path: str
    """Expression in `calls.py`: `result[0]`, or the name of an input that the call changed."""
    tensor: TensorSpec

    @property
    def is_input(self) -> bool:
        """True if the call changed an input in place."""
        return self.path == self.name


class RecordedCall(msgspec.Struct, frozen=True):
    """One call of an entry point."""

    expression: str
    """The call as Python text; each input tensor is a name."""
    inputs: dict[str, TensorSpec]
    """Input tensors by name, with the values before the call."""
    outputs: tuple[RecordedOutput, ...]
    truths: tuple[TensorSpec | None, ...] = ()
    """The oracle's outputs, in the order of `outputs`; `None` where it has none."""
    operators: tuple[str, ...] = ()
    """Tensor operators that the call used outside of kernels."""
    draw_seed: int | None = None
    """The seed of torch's generators for this call; `None` if the call draws no random numbers."""
    draws: tuple[str, ...] = ()
    """The operators that draw, in order, as Python text: `randint(100, [64], dtype=torch.int64)`."""
    differentiated: tuple[str, ...] = ()
    """Inputs whose gradients are outputs."""
    gradients: tuple[tuple[str, str], ...] = ()
    """Expressions of outputs, and the input that is the gradient of each."""
    model: str = ""
    """How the called model was built: the beginning of `expression`. Empty for other calls."""
    state: tuple[tuple[str, str], ...] = ()
    """Names in the model's `state_dict`, and the input with each value."""
    returns: str = ""
    """The returned value in words, with a `NUMBER` after the type of each number; empty for a launch."""
    numbers: tuple[str, ...] = ()
    """The returned numbers in order."""
    moved_bytes: int | None = None
    """Bytes that the reference reads of the inputs, returns and changes, each once: an estimate of what every kernel must move.
    `None`: not known."""
    multiplies: bool = False
    """The reference multiplies matrices; known if `RunScript.counts_bytes`."""
    unjudged: tuple[str, ...] = ()
    """Parts of the result that are no tensors, in words."""
    for_timing: bool = False
    """Its inputs are for timing: too large for the interpreter."""
    open_share: float = 0.0
    """Share of the outputs' elements that the run before, with the same seed and other fresh memory, computed differently."""
    unsupported: str = ""
    """Why the call cannot be repeated; then there are no inputs and outputs."""

    @property
    def no_baseline(self) -> str:
        """Why the reference does not do the work of the call, so that its time is no baseline; empty if it does."""
        if self.open_share <= MOST_OPEN:
            return ""
        return (
            f"{100 * self.open_share:.3g} % of what the reference computes here is undefined: "
            "memory that it never writes, or reads outside its tensors"
        )


class RanScript(msgspec.Struct, frozen=True, tag="ran_script"):
    """The calls of one run, in order."""

    calls: tuple[RecordedCall, ...]
    error: str = ""
    """The exception that ended the script early, in one line."""
    seconds: float = 0.0
    nodes: tuple[str, ...] = ()
    """Nodes that the worker chose."""
    ended_after: int = 0
    """Calls after which the worker ended the script; 0 if it did not."""
    notes: tuple[str, ...] = ()
    """Facts about the choice, for the task's notes."""

    @property
    def input_bytes(self) -> int:
        """Bytes of all inputs."""
        return sum(len(data.data) for call in self.calls for data in call.inputs.values())

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors."""
        outputs = sum(len(output.tensor.data) for call in self.calls for output in call.outputs)
        truths = sum(len(truth.data) for call in self.calls for truth in call.truths if truth is not None)
        return self.input_bytes + outputs + truths


class RunCall(msgspec.Struct, frozen=True, tag="run_call"):
    """Make one call of the function in `calls.py` with these arguments."""

    source: str
    """The reference with the text of `calls.py` behind it."""
    target: str
    arguments: dict[str, TensorSpec | int]


class RanCall(msgspec.Struct, frozen=True, tag="ran_call"):
    """The outputs of one call."""

    outputs: tuple[TensorSpec, ...]
    """Empty if the call raised an exception or returned something else than tensors."""
    casts: tuple[str, ...] = ()
    """Names of the 16-bit floats to which the reference casts wider ones."""
