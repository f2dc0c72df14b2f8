"""Parses `--shapes`: `x=Mx4096:fp16, w=4096:fp16, idx=M:int64:0..32000, cu=B+1:i32:cu_seqlens(M), eps=1e-6, M=1,16,256, B=8`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple

import msgspec

from suites.dtypes import TASK_DTYPES, is_exact, item_bytes
from suites.errors import BadKernelFile, nearest
from suites.input_kinds import KINDS, BlockTable, InputKind, Integers
from suites.source.python_source import parse_literal

from .evidence import InputsSeen

SHORT_DTYPES = {
    "fp64": "float64", "fp32": "float32", "fp16": "float16", "bf16": "bfloat16", "half": "float16", "f64": "float64",
    "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8",
    "fp8": "fp8_e4m3", "fp8e4m3": "fp8_e4m3", "fp8e5m2": "fp8_e5m2",
}  # fmt: skip
MOST_CASES = 32
Dim = int | str
"""A size: a number, a name, or a multiple of a name and a number more, such as `2*N` or `B+1`."""


class Largest(msgspec.Struct, frozen=True):
    """A plain value: the length of the longest sequence of an input with offsets, or the largest value of another input."""

    input: str

    def __repr__(self) -> str:
        return f"max({self.input})"


Scalar = bool | int | float | str | None | Largest
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*|\[\d+\]|\(\d+\))?")
"""An input: a parameter, or its part, as `meta.lens` of an object, `kv[0]` of a list and `kv(0)` of a tuple."""
_ENTRIES = re.compile(r"[,;]\s*(?=[A-Za-z_][\w.\[\]]*(?:\(\d+\))?\s*=)")
_DIM = re.compile(r"(?:(?P<factor>\d+)\*?)?(?P<name>[A-Za-z_]\w*)(?P<more>\+\d+)?|(?P<number>\d+)")
_KIND = re.compile(r"(?P<word>[a-z]\w*)(?:\((?P<arguments>.*)\))?")
_LARGEST = re.compile(r"max\((?P<input>.+)\)")
_RANGE = re.compile(r"(?P<low>-?[\w.*+]+?)\.\.(?P<high>-?[\w.*+]+)")
EXAMPLE = "x=8192x4096:fp16, w=4096:fp16"


class TensorShape(msgspec.Struct, frozen=True):
    """One input tensor of a case."""

    shape: tuple[Dim, ...]
    dtype: str
    """Name of a dtype of tasks."""
    strides: tuple[Dim, ...] | None = None
    """In elements; `None`: contiguous."""
    transposed: bool = False
    """The last two dimensions are swapped in memory."""
    low: Dim | float | None = None
    """Smallest value; `None`: normally distributed values."""
    high: Dim | float | None = None
    """Largest value. Integers stay below it."""
    kind: InputKind | None = None
    """How the values depend on each other, or on other inputs."""
    is_annotated: bool = False
    """The annotation of the parameter gives it."""

    @property
    def needs_range(self) -> bool:
        """It holds integers, and which is not known: an index out of range would be read."""
        return is_exact(self.dtype) and self.dtype != "bool" and self.low is None


class Inputs(msgspec.Struct, frozen=True):
    """The inputs of one case, by name of the parameter, and the sizes that have names."""

    tensors: dict[str, TensorShape]
    scalars: dict[str, Scalar]
    sizes: dict[str, int]
    weight: float = 0.0
    """Share of a program's time; 0 if it is not known."""
    exam: bool = False

    def input_bytes(self) -> dict[str, int]:
        """Return the bytes of the elements of each tensor, by its name."""
        return {
            name: math.prod(value_of(dim, self.sizes) for dim in tensor.shape) * item_bytes(tensor.dtype)
            for name, tensor in self.tensors.items()
        }


def parse_shapes(
    specifications: Sequence[str], annotated: Mapping[str, TensorShape] | None = None
) -> tuple[Inputs, ...]:
    """Return the inputs of each case: one case for each specification, more if it sweeps a size.

    `annotated` has tensors that a specification may leave out. Raises `BadKernelFile` with the entry that cannot be read.
    """
    cases = [case for text in specifications for case in _parse(text, annotated or {})]
    if len(cases) > MOST_CASES:
        raise BadKernelFile(f"--shapes makes {len(cases)} cases; {MOST_CASES} are the most")
    return tuple(cases)


def inputs_of(seen: InputsSeen, parameters: Sequence[str]) -> Inputs:
    """Return the inputs of a case like those that `get_inputs()` returned; values are drawn anew.

    Raises `BadKernelFile` if they are not the inputs of an entry point with these parameters.
    """
    if seen.error:
        raise BadKernelFile(f"get_inputs() fails: {seen.error}; give the inputs with --shapes")
    if len(seen.values) > len(parameters):
        raise BadKernelFile(
            f"get_inputs() returns {len(seen.values)} values, but the entry point takes {', '.join(parameters)}"
        )
    dims = sorted({size for value in seen.values for size in value.shape})
    tensors: dict[str, TensorShape] = {}
    scalars: dict[str, Scalar] = {}
    for value, parameter in zip(seen.values, parameters, strict=False):
        name = value.name or parameter
        if not value.dtype:
            scalars[name] = value.scalar
            continue
        if value.dtype not in TASK_DTYPES:
            raise BadKernelFile(f"get_inputs(): {name} is {value.dtype}, which no task can have")
        low: Dim | float | None = None
        high: Dim | float | None = None
        if is_exact(value.dtype) and value.dtype != "bool":
            low, high = int(value.low), int(value.high) + 1
            # Indices seldom reach the last row: a size that is a little larger is meant.
            high = next((size for size in dims if high <= size < 2 * high), high)
        elif not is_exact(value.dtype) and 0 <= value.low < value.high:
            low, high = 0.0, float(f"{value.high:.1g}") if value.high > 1 else 1.0
        tensors[name] = _laid_out(TensorShape(value.shape, value.dtype, low=low, high=high), value.strides)
    return Inputs(tensors, scalars, {})


def _laid_out(tensor: TensorShape, strides: tuple[int, ...]) -> TensorShape:
    """Return a tensor with these strides: unchanged if they are dense, `transposed` if the last two dimensions are swapped."""
    shape = [value_of(dim, {}) for dim in tensor.shape]
    dense = [math.prod(shape[place + 1 :]) for place in range(len(shape))]
    if strides == tuple(dense) or len(shape) < 2:
        return tensor
    swapped = [*shape[:-2], shape[-1], shape[-2]]
    in_memory = [math.prod(swapped[place + 1 :]) for place in range(len(shape))]
    if [*strides[:-2], strides[-1], strides[-2]] == in_memory:
        return msgspec.structs.replace(tensor, transposed=True)
    return msgspec.structs.replace(tensor, strides=strides)


def _parse(text: str, annotated: Mapping[str, TensorShape]) -> list[Inputs]:
    """Return the cases of one `--shapes`: an entry for each combination of the values of its sizes.

    `annotated` tensors are added unless the text names them. Raises `BadKernelFile` with the remedy.
    """
    tensors: dict[str, TensorShape] = {}
    values: dict[str, str] = {}
    stripped = text.strip().strip(",;")
    for entry in _ENTRIES.split(stripped) if stripped or not annotated else ():
        name, separator, value = (part.strip() for part in entry.partition("="))
        if not separator or not _NAME.fullmatch(name) or not value:
            raise BadKernelFile(f"--shapes: {entry!r} is no input; write inputs as {EXAMPLE!r}")
        if name in tensors or name in values:
            raise BadKernelFile(f"--shapes: {name} occurs twice in {text!r}")
        if ":" in value:
            tensors[name] = _tensor(name, value)
        else:
            values[name] = value
    _check_parts([*tensors, *values])
    given = {*map(parameter_of, tensors), *map(parameter_of, values)}
    tensors |= {name: tensor for name, tensor in annotated.items() if name not in given}
    used = {part for tensor in tensors.values() for part in _names(tensor)} - tensors.keys()
    for name in used - values.keys():
        raise BadKernelFile(f"--shapes: the size {name} has no value; add {name}=4096, or several values")
    sweeps = {name: _size_values(name, values[name]) for name in values if name in used}
    scalars = {name: _scalar(name, value, tensors) for name, value in values.items() if name not in used}
    if not tensors:
        raise BadKernelFile(f"--shapes: {text!r} has no tensor; write inputs as {EXAMPLE!r}")
    return [
        Inputs(tensors, scalars, dict(zip(sweeps, sizes, strict=True)))
        for sizes in itertools.product(*sweeps.values())
    ]


def _check_parts(names: Sequence[str]) -> None:
    """Raise `BadKernelFile` if parts of a parameter contradict each other, or if a list or a tuple lacks one."""
    for parameter in dict.fromkeys(map(parameter_of, names)):
        parts = [name for name in names if parameter_of(name) == parameter]
        signs = {name.removeprefix(parameter)[:1] for name in parts}
        if len(signs) > 1:
            raise BadKernelFile(
                f"--shapes: {' and '.join(parts)}: an object has parts {parameter}.name, a list {parameter}[0], "
                f"a tuple {parameter}(0); write all parts of {parameter} alike"
            )
        numbers = [int(name[len(parameter) + 1 : -1]) for name in parts if name.endswith(("]", ")"))]
        if lacking := sorted({*range(len(numbers))} - {*numbers}):
            raise BadKernelFile(
                f"--shapes: {parts[-1]} has no part {lacking[0]} beside it; number the parts of {parameter} from 0"
            )


def _tensor(name: str, value: str) -> TensorShape:
    """Return the tensor of an entry such as `Mx4096:fp16:t`. Raises `BadKernelFile` with the remedy."""
    shape, dtype, *options = (part.strip() for part in value.split(":"))
    full = SHORT_DTYPES.get(dtype.lower(), dtype)
    if full not in TASK_DTYPES:
        raise BadKernelFile(
            f"--shapes: {name} has the unknown dtype {dtype!r}{nearest(dtype, [*SHORT_DTYPES, *TASK_DTYPES])}"
        )
    tensor = TensorShape(_dims(name, shape), full)
    for option in options:
        bounds, word = _RANGE.fullmatch(option), _KIND.fullmatch(option)
        if word and word["word"] in KINDS:
            read = _kind(name, word, tensor)
            low, high = getattr(read, "low", 0), getattr(read, "high", None)
            tensor = msgspec.structs.replace(tensor, low=low, high=high, kind=read)
        elif bounds:
            low, high = _bound(name, bounds["low"]), _bound(name, bounds["high"])
            # Other inputs may read the values of a vector.
            kind = Integers(low, high) if is_exact(full) and len(tensor.shape) == 1 else None
            tensor = msgspec.structs.replace(tensor, low=low, high=high, kind=kind)
        elif option == "t" and len(tensor.shape) > 1:
            tensor = msgspec.structs.replace(tensor, transposed=True)
        elif option.startswith("strides=") and option.count("x") == len(tensor.shape) - 1:
            tensor = msgspec.structs.replace(tensor, strides=_dims(name, option.removeprefix("strides=")))
        else:
            raise BadKernelFile(
                f"--shapes: {name} has the unknown part {option!r}; write a range as 0..100, a transposed tensor as t, "
                f"other strides as strides=1x4096, a kind as {', '.join(KINDS)}"
            )
    if tensor.needs_range:
        raise BadKernelFile(
            f"--shapes: {name} is {full} without a range; give one, for example {name}={shape}:{dtype}:0..100"
        )
    return tensor


def _dims(name: str, text: str) -> tuple[Dim, ...]:
    """Return the sizes in `4096x128`, `Mx2N` or, for a tensor without dimensions, in an empty text."""
    dims: list[Dim] = []
    for part in text.split("x") if text else []:
        match = _DIM.fullmatch(part.strip())
        if match is None or match["number"] == "0":
            raise BadKernelFile(
                f"--shapes: {name} has the size {part!r}; write sizes as 8192x4096, Mx4096 or B+1"
            )
        dims.append(_dim_of(match))
    return tuple(dims)


def _dim_of(match: re.Match[str]) -> Dim:
    if match["number"]:
        return int(match["number"])
    factor = f"{match['factor']}*" if match["factor"] else ""
    return f"{factor}{match['name']}{match['more'] or ''}"


def _kind(name: str, match: re.Match[str], tensor: TensorShape) -> InputKind:
    """Return the kind of an entry such as `block_table(N,lens,16)`. Raises `BadKernelFile` with its form."""
    word, texts = match["word"], (match["arguments"] or "").split(",")
    make, form = KINDS[word]
    parts: list[Dim | float] = [_bound(name, text.strip()) for text in texts if text]
    if word == "permutation":
        parts += tensor.shape[-1:]
    if word == "sorted" and not is_exact(tensor.dtype):
        parts = [float(part) if isinstance(part, int) else part for part in parts]
    elif not is_exact(tensor.dtype):
        raise BadKernelFile(
            f"--shapes: {name} is {tensor.dtype}, but {word} means integers; write {name}=8:i32:{word}"
        )
    try:
        kind = make(*parts)
        if isinstance(kind, BlockTable) and not isinstance(kind.lengths, str):
            raise TypeError("its second argument is an input")
    except TypeError as error:
        raise BadKernelFile(f"--shapes: {name} has {match.group()!r}; write {form}") from error
    return kind


def _bound(name: str, text: str) -> Dim | float:
    """Return a bound of a range: a number, a size, or an input that a kind reads. Raises `BadKernelFile`."""
    for number in (int, float):
        with suppress(ValueError):
            return number(text)
    if match := _DIM.fullmatch(text):
        return _dim_of(match)
    if _NAME.fullmatch(text):
        return text
    raise BadKernelFile(f"--shapes: {name} has the bound {text!r}, which is no number")


def _names(tensor: TensorShape) -> set[str]:
    read = astuple(tensor.kind) if tensor.kind is not None else ()
    parts = [*tensor.shape, *(tensor.strides or ()), tensor.low, tensor.high, *read]
    return {size_name(part) for part in parts} - {""}


def _size_values(name: str, text: str) -> list[int]:
    """Return the values of a size, each once. Raises `BadKernelFile` if one is no whole number above 0."""
    try:
        values = [int(part) for part in text.split(",")]
    except ValueError:
        raise BadKernelFile(
            f"--shapes: {name}={text} is a size; write its values as {name}=1,16,256"
        ) from None
    if min(values) < 1:
        raise BadKernelFile(f"--shapes: {name}={text}: a size must be above 0")
    return list(dict.fromkeys(values))


def _scalar(name: str, text: str, tensors: Mapping[str, TensorShape]) -> Scalar:
    """Return the plain value of an entry such as `eps=1e-6` or `longest=max(cu)`. Raises `BadKernelFile`."""
    if largest := _LARGEST.fullmatch(text):
        if (read := tensors.get(largest["input"])) is None or read.kind is None:
            raise BadKernelFile(
                f"--shapes: {name} reads {largest['input']}; add {largest['input']}=8:i32:1..1025"
            )
        return Largest(largest["input"])
    word = {"none": "None", "true": "True", "false": "False"}.get(text.lower(), text)
    try:
        value = parse_literal(word)
    except (ValueError, SyntaxError):
        raise BadKernelFile(
            f"--shapes: {name}={text} has no dtype and is no number; write a tensor as {name}=8192x4096:fp16"
        ) from None
    if (
        not isinstance(value, bool | int | float | str | None)
        or (isinstance(value, float) and not math.isfinite(value))
        or (isinstance(value, int) and not -(2**63) <= value < 2**64)
    ):
        raise BadKernelFile(f"--shapes: {name}={text} is no plain value")
    return value


def value_of(dim: Dim, sizes: Mapping[str, int]) -> int:
    """Return the value of a size."""
    if isinstance(dim, int):
        return dim
    factor, name, more = split_dim(dim)
    return factor * sizes[name] + more


def split_dim(dim: str) -> tuple[int, str, int]:
    """Return the factor of a size, its name, and the number that is added: `(2, "N", 1)` of `2*N+1`."""
    factor, _, rest = dim.rpartition("*")
    name, _, more = rest.partition("+")
    return int(factor or 1), name, int(more or 0)


def parameter_of(name: str) -> str:
    """Return the parameter of an input, which may be a part of it."""
    return re.split(r"[.\[(]", name)[0]


def size_name(dim: object) -> str:
    """Return the name in a size; empty for a number."""
    return split_dim(dim)[1] if isinstance(dim, str) and dim else ""
