"""Messages to and from a script worker that runs a benchmark's test as a program, and compares results. Torch-free."""

from __future__ import annotations

from typing import TypeAlias, Union

import msgspec

from harness.wire.script_messages import Record
from suites.task import QuantizationTolerance


class TensorValue(msgspec.Struct, frozen=True, tag="tensor"):
    """A tensor or an array; contiguous."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes
    is_array: bool = False
    """True for an array of numpy."""


class NumberValue(msgspec.Struct, frozen=True, tag="number"):
    """A number of Python or numpy."""

    number: float
    is_exact: bool
    """True for integers and booleans."""


class ListValue(msgspec.Struct, frozen=True, tag="list"):
    """A list or tuple."""

    items: tuple[Value, ...]


class DictValue(msgspec.Struct, frozen=True, tag="dict"):
    """A dictionary in its own order."""

    keys: tuple[str, ...]
    """`repr` of each key."""
    items: tuple[Value, ...]


class OtherValue(msgspec.Struct, frozen=True, tag="other"):
    """A value of any other kind."""

    text: str
    """A string, or the name of the type."""


Value: TypeAlias = Union[TensorValue, NumberValue, ListValue, DictValue, OtherValue]  # noqa: UP007 -- forward references


class RunProgram(msgspec.Struct, frozen=True, tag="run_program"):
    """Run a text as `__main__`."""

    nonce: str
    text: str
    file: str
    """Name of its file."""
    target: str
    helpers: dict[str, str] = {}
    """Modules of the benchmark that the program imports: texts by file name."""
    seed: int | None = None
    """Seed of all generators; `None`: a random seed, as in a new process."""
    result_name: str = ""
    """Global variable with the results; empty: results are not reported."""


class RanProgram(msgspec.Struct, frozen=True, tag="ran_program"):
    """Report of a program that ran."""

    nonce: str
    error: str = ""
    """The exception that ended the program, in one line; empty if the exit code is 0."""
    unsupported: bool = False
    """True if the error says that this device cannot run the program."""
    printed: str = ""
    results: Value | None = None
    """`None` if the program has no results."""


class ComparisonRule(msgspec.Struct, frozen=True):
    """A benchmark's own rule for equal results."""

    tolerances: dict[str, float] = {}
    """Both `rtol` and `atol` by dtype."""
    default_tolerance: float = 0.0
    """Both `rtol` and `atol` for all other dtypes; 0: exact."""
    equal_nan: bool = False
    quantization: QuantizationTolerance | None = None
    """If set, these limits replace the tolerances of tensors. `rmse_max` is absolute."""


class Compare(msgspec.Struct, frozen=True, tag="compare"):
    """Compare the results of another program with those of the program that ran here."""

    nonce: str
    results: Value | None
    rule: ComparisonRule


class Compared(msgspec.Struct, frozen=True, tag="compared"):
    """The first difference."""

    nonce: str
    difference: str = ""
    """Empty if the results are equal by the rule."""


SCRIPT_REQUESTS: msgspec.msgpack.Decoder[Record | RunProgram | Compare] = msgspec.msgpack.Decoder(
    Record | RunProgram | Compare
)
PROGRAM_REPORTS: msgspec.msgpack.Decoder[RanProgram | Compared] = msgspec.msgpack.Decoder(
    RanProgram | Compared
)
