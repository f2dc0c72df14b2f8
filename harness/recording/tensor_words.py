"""Describes a tensor of a recorded call: dtype, shape, strides, what integers have in common, and its first values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.wire.calls.tensors import TensorSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_VALUES = 16
"""Integers of a tensor that are listed, if they are the same with each seed."""
LEAST_ORDERED = 6
"""Elements from which an order is no accident."""
UNLIKELY = 14
"""Square of the number of elements over the number of values from which a draw without equal values is no accident."""
WHOLE, CORNER = 12, (2, 4)
"""Most elements of a tensor that is shown in full; else rows and columns of the shown corner."""
INTEGERS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"})


def tensor_words(runs: Sequence[TensorSpec], *, with_values: bool = True) -> str:
    """Return an input in words: `int64[512] (0 to 8191; ascending)`. `runs`: the input with the values of different seeds.

    `with_values` is false for a tensor that the call changes: its values may be those of unused memory. Only zeros are named.
    """
    data = runs[0]
    text = f"{data.dtype}{list(data.shape)}"
    if not _is_dense(data):
        text += f" with strides {data.strides}"
    is_zero = (
        not with_values and 0 not in data.shape and all(run.data.count(0) == len(run.data) for run in runs)
    )
    values = "all 0 before the call" * is_zero
    if with_values and data.dtype in INTEGERS and 0 not in data.shape:
        values = _values_words(runs)
    return f"{text} ({values})" if values else text


def _is_dense(data: TensorSpec) -> bool:
    """True if the elements lie in the order of the shape, without gaps."""
    stride = 1
    for size, own in zip(reversed(data.shape), reversed(data.strides), strict=True):
        if size > 1 and own != stride:
            return False
        stride *= size
    return True


def _values_words(runs: Sequence[TensorSpec]) -> str:
    """Return in words what the integers of a tensor have in common in all runs, such as `each of 0 to 99 once; ascending`.

    Few values that are equal in all runs are listed. Else the words say bounds, order, and whether a value occurs twice.
    """
    values = [_values(run) for run in runs]
    low, high = min(int(run.min()) for run in values), max(int(run.max()) for run in values)
    if runs[0].dtype == "bool":
        return "" if low != high else "all true" if high else "all false"
    is_same = all(run.shape == values[0].shape and (run == values[0]).all() for run in values)
    if is_same and values[0].size <= MOST_VALUES:
        return str(values[0].tolist())
    if low == high:
        return f"all {low}"
    is_large = values[0].size >= LEAST_ORDERED
    is_ascending = is_large and values[0].ndim == 1 and all((run[1:] >= run[:-1]).all() for run in values)
    order = "; ascending" * is_ascending
    if is_large and all(_is_unique(run) for run in values):
        if all(run.size == high - low + 1 for run in values):
            return f"each of {low} to {high} once{order}"
        if min(run.size for run in values) ** 2 > UNLIKELY * (high - low + 1):
            return f"{low} to {high}; no value twice{order}"
    return f"{low} to {high}{order}"


def corner_words(name: str, data: TensorSpec, row: int | None = None) -> str:
    """Return the first values of a tensor: `x[:2, :4] = [[0.5, ...], ...]`; empty if there are no values to show.

    With `row`, the first values of this row of its first dimension.
    Without a finite value it is memory that nothing wrote. 8-bit and complex floats are not shown.
    """
    if 0 in data.shape or data.dtype.startswith(("float8", "complex")):
        return ""
    values = _values(data)
    if values.size > WHOLE:
        rank = values.ndim
        corner: list[int | slice] = [0] * (rank - 2) + [slice(side) for side in CORNER if rank > 1]
        corner = corner or [slice(WHOLE)]
        if row is not None:
            corner = [row, *[0] * (rank - 2), slice(CORNER[1])]
        values = values[tuple(corner)]
        name += f"[{', '.join(f':{at.stop}' if isinstance(at, slice) else str(at) for at in corner)}]"
    if values.dtype.kind == "f" and not (abs(values) < float("inf")).any():
        return ""
    return f"{name} = {_nested(values.tolist())}"


def first_index(data: TensorSpec) -> int | None:
    """Return the first value of a tensor of integers, which may be an index; `None` for other tensors."""
    if data.dtype not in INTEGERS - {"bool"} or 0 in data.shape:
        return None
    return int(_values(data).flat[0])


def _nested(values: object) -> str:
    if isinstance(values, list):
        return f"[{', '.join(map(_nested, values))}]"
    return f"{values:.5g}" if isinstance(values, float) else str(values)


def _is_unique(values: NDArray[Any]) -> bool:
    import numpy as np

    return len(np.unique(values)) == values.size


def _values(data: TensorSpec) -> NDArray[Any]:
    """Return the tensor's values, of bfloat16 as float32; each run has its own shape of strides."""
    import numpy as np  # here, so that commands that judge nothing start without it

    if data.dtype == "bfloat16":
        flat = (np.frombuffer(data.data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        flat = np.frombuffer(data.data, np.dtype(data.dtype))
    strides = tuple(stride * flat.itemsize for stride in data.strides)
    return np.lib.stride_tricks.as_strided(flat, data.shape, strides, writeable=False)
