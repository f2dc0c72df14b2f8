"""
Indices of `tl.gather` and values of `tl.histogram`, held to what Triton promises: those within the source, within the bins.

Any other is undefined on a device, which looks into memory beside the source and counts in a bin of its own choice; numpy
counts from the end, and puts the upper edge into the last bin. Here it is reported with its line like a load outside of a tensor.
Lanes that a histogram's mask leaves out may hold anything. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .candidate_lines import candidate_line
from .observing import current
from .places import counted, indices_told
from .shaping import Differs
from .traffic import MAX_REPORTS


def install() -> None:
    """Once a process, before `accesses.install`."""
    interpreter.InterpreterBuilder.create_gather = _gather
    interpreter.InterpreterBuilder.create_histogram = _histogram


def _gather(self: Any, src: Any, indices: Any, axis: int) -> Any:  # noqa: ARG001 -- the builder's method
    size = src.data.shape[axis]
    lanes = indices.data.astype(np.int64)
    outside = (lanes < 0) | (lanes >= size)
    if outside.any():
        _tell("tl.gather", "index", "its source", lanes[outside], size)
        lanes = np.where(outside, size - 1, lanes)
    return TensorHandle(np.take_along_axis(src.data, lanes, axis=axis), src.dtype.scalar)


def _histogram(self: Any, data: Any, bins: int, mask: Any) -> Any:  # noqa: ARG001 -- the builder's method
    values = data.data.astype(np.int64)
    if mask is not None:
        values = values[np.broadcast_to(mask.data, values.shape)]
    outside = (values < 0) | (values >= bins)
    if outside.any():
        _tell("tl.histogram", "value", "its bins", values[outside], bins)
        values = values % bins
    return TensorHandle(np.bincount(values, minlength=bins).astype(np.int32), tl.int32)


def _tell(name: str, what: str, of: str, wrong: NDArray[np.int64], size: int) -> None:
    """Notes it in the running observation; `Differs` where the kernel has to run in Python for its line."""
    observation = current()
    if observation is None:
        return
    file, line = candidate_line()
    if not line:
        raise Differs
    told = f"{file} line {line}: `{name}`"
    seen = observation.missed_loads
    if len(seen) < MAX_REPORTS and not any(one.startswith(told) for one in seen):
        where = indices_told(wrong.reshape(-1)).replace("index", what, 1)
        seen.append(
            f"{told} of {counted(wrong.size)} outside of {of} ({where}, size {size}) in program {observation.position}"
        )
