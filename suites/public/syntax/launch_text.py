"""Writes a test that makes one launch of a kernel, from the launch's arguments in a file of tritonparse."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from suites.dtypes import ITEM_BYTES, is_exact

_TRITON_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8e4nv",
    "fp8e4b8": "float8e4b8",
    "fp8e5": "float8e5",
    "fp8e5b16": "float8e5b16",
    **{
        name: name
        for name in ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
}
_OPTIONS = ("num_warps", "num_stages")
"""Options of a launch that every target has."""
_DRAW = '''\
import torch
import triton.language


def draw(dtype, shape, strides, offset, statistics=None):
    """Draw a tensor in the layout of the launch; without statistics, floats are normal and booleans fair."""
    own = [1 if stride == 0 else size for size, stride in zip(shape, strides)]
    values = torch.randn(own, device="cuda")
    if statistics is not None:
        mean, std, low, high = statistics
        values = (values * std + mean).clamp(low, high)
    if dtype == torch.bool:
        values = values > 0
    elif not dtype.is_floating_point:
        values = values.round()
    items = 1 + offset + sum((size - 1) * stride for size, stride in zip(own, strides))
    memory = torch.zeros(max(items, 1), dtype=dtype, device="cuda")
    return memory.as_strided(own, strides, offset).copy_(values).expand(shape)

'''


class Argument(msgspec.Struct, frozen=True):
    """One argument of a launch."""

    type: str | None = None
    value: bool | int | float | str | None = None
    repr: str | None = None
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] | None = None
    storage_offset: int = 0
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None


class LaunchText(msgspec.Struct, frozen=True):
    """The parts of a context file of tritonparse that a test needs."""

    grid: tuple[int, ...] = ()
    extracted_args: dict[str, Argument] = {}
    compilation_metadata: dict[str, object] = {}


def launch_test(kernel: str, launch: LaunchText) -> str:
    """Return a module that draws the arguments and launches the kernel. Raises `ValueError` if an argument cannot be made."""
    if not launch.grid or not launch.extracted_args:
        raise ValueError("the launch has no grid or no arguments")
    lines = [f"    {name}={_argument(name, value)}," for name, value in launch.extracted_args.items()]
    lines += [f"    {name}={value!r}," for name, value in _options(launch)]
    grid = f"{', '.join(map(str, launch.grid))}{',' if len(launch.grid) == 1 else ''}"
    return "\n".join([_DRAW, f"{kernel}[{grid}](", *lines, ")", ""])


def _options(launch: LaunchText) -> Iterator[tuple[str, int]]:
    for name in _OPTIONS:
        value = launch.compilation_metadata.get(name)
        if isinstance(value, int) and name not in launch.extracted_args:
            yield name, value


def _argument(name: str, value: Argument) -> str:
    """Return the text of an argument of the launch. Raises `ValueError` for a type without one."""
    if value.type == "tensor":
        return _tensor(name, value)
    if value.type == "NoneType":
        return "None"
    if value.type == "dtype" and value.repr in _TRITON_DTYPES:
        return f"triton.language.{_TRITON_DTYPES[value.repr]}"
    if value.type not in ("int", "bool", "str", "float"):
        raise ValueError(f"its argument `{name}` is a {value.type}")
    return f'float("{value.value}")' if isinstance(value.value, float) else repr(value.value)


def _tensor(name: str, value: Argument) -> str:
    """Return the text that draws an argument's tensor with its recorded layout and statistics. Raises `ValueError`."""
    dtype = value.dtype.removeprefix("torch.")
    if dtype not in ITEM_BYTES:
        raise ValueError(f"its argument `{name}` has the dtype {dtype}")
    statistics = (value.mean, value.std, value.min, value.max)
    has_statistics = dtype != "bool" and all(
        isinstance(number, float) and math.isfinite(number) for number in statistics
    )
    if is_exact(dtype) and dtype != "bool" and not has_statistics and 0 not in value.shape:
        raise ValueError(
            f"its argument `{name}` holds integers without statistics; trace with TRITONPARSE_MORE_TENSOR_INFORMATION=1"
        )
    strides = value.stride
    if strides is None:
        strides = tuple(math.prod(value.shape[place + 1 :]) for place in range(len(value.shape)))
    layout = f"torch.{dtype}, {list(value.shape)}, {list(strides)}, {value.storage_offset}"
    return f"draw({layout}, {statistics})" if has_statistics else f"draw({layout})"
