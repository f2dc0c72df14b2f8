"""Messages to and from a script worker that runs a program, compares results, or makes a first call. Torch-free."""

from __future__ import annotations

import msgspec

from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import RanCall, RanScript, RunCall, RunScript
from suites.own.evidence import FirstCallSeen, InputsSeen
from suites.task import QuantizationTolerance

ARRAY = "numpy."
"""Begins the dtype of an array of numpy, which is no tensor of torch."""
Value = TensorSpec | bool | int | float | str
"""A part of a result. Text is a string, or describes a container or a value of any other kind."""
Results = dict[str, Value]
"""The parts of a result by the expression that reaches them; a container comes before its items."""


class RunProgram(msgspec.Struct, frozen=True, tag="run_program"):
    """Run a text as `__main__`."""

    text: str
    target: str
    helpers: dict[str, str] = {}
    """Modules of the benchmark that the program imports: texts by file name."""
    seed: int | None = None
    """Seed of all generators; `None`: a random seed, as in a new process."""
    result_name: str = ""
    """Global variable with the results; empty: results are not reported."""


class RanProgram(msgspec.Struct, frozen=True, tag="ran_program"):
    """Report of a program that ran."""

    error: str = ""
    """The exception that ended the program, in one line; empty if the exit code is 0."""
    unsupported: bool = False
    """True if the error says that this device cannot run the program."""
    printed: str = ""
    results: Results | None = None
    """`None` if the program has none."""


class Compare(msgspec.Struct, frozen=True, tag="compare"):
    """Compare the results of another program with those of the program that ran here, by a benchmark's own rule.

    The answer is a text: the first difference; empty if the results are equal by the rule.
    """

    results: Results | None = None
    tolerances: dict[str, float] = {}
    """Both `rtol` and `atol` by dtype."""
    default_tolerance: float = 0.0
    """Both `rtol` and `atol` for all other dtypes; 0: exact."""
    equal_nan: bool = False
    quantization: QuantizationTolerance | None = None
    """If set, these limits replace the tolerances of tensors. `rmse_max` is absolute."""


class FirstCall(msgspec.Struct, frozen=True, tag="first_call"):
    """Call a kernel, and its reference with the same inputs, to see what they return and change. The answer: `FirstCallSeen`."""

    kernel: str
    """Text of the kernel's module."""
    entry_point: str
    inputs: str
    """Text that defines `make_inputs`."""
    sizes: dict[str, int]
    dtype: str
    parameters: tuple[str, ...]
    """Parameters of the entry point, in order."""
    target: str
    reference: str = ""
    """Text that defines `oracle`, a function with the entry point's parameters; empty if there is none."""


class ReadInputs(msgspec.Struct, frozen=True, tag="read_inputs"):
    """Call `get_inputs()` of a module. The answer: `InputsSeen`."""

    text: str
    target: str


ScriptRequest = RunScript | RunCall | RunProgram | Compare | FirstCall | ReadInputs
ScriptAnswer = RanScript | RanCall | RanProgram | str | FirstCallSeen | InputsSeen
SCRIPT_REQUESTS: msgspec.msgpack.Decoder[ScriptRequest] = msgspec.msgpack.Decoder(ScriptRequest)
