"""Checks indices of `tl.gather` and values of `tl.histogram`: they must lie within the source or the bins.

Any other index is undefined on a device, which reads memory beside the source or counts in an arbitrary bin. numpy counts
from the end and puts the upper edge into the last bin. Here it is reported with its line, like a load outside of a tensor.
Lanes outside of a histogram's mask may hold any value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.interpreter.tapes.operations import Differs

from .candidate_lines import candidate_line
from .observing import current
from .places import elements_text, indices_text
from .traffic import MAX_REPORTS


def install() -> None:
    """Once a process, before `accesses.install`."""
    interpreter.InterpreterBuilder.create_gather = _gather
    interpreter.InterpreterBuilder.create_histogram = _histogram


def _gather(_: Any, src: Any, indices: Any, axis: int) -> Any:
    size = src.data.shape[axis]
    lanes = indices.data.astype(np.int64)
    outside = (lanes < 0) | (lanes >= size)
    if outside.any():
        _report("tl.gather", "index", "its source", lanes[outside], size)
        lanes = np.where(outside, size - 1, lanes)
    return TensorHandle(np.take_along_axis(src.data, lanes, axis=axis), src.dtype.scalar)


def _histogram(_: Any, data: Any, bins: int, mask: Any) -> Any:
    values = data.data.astype(np.int64)
    if mask is not None:
        values = values[np.broadcast_to(mask.data, values.shape)]
    outside = (values < 0) | (values >= bins)
    if outside.any():
        _report("tl.histogram", "value", "its bins", values[outside], bins)
        values = values % bins
    return TensorHandle(np.bincount(values, minlength=bins).astype(np.int32), tl.int32)


def _report(name: str, noun: str, place: str, wrong: NDArray[np.int64], size: int) -> None:
    """Note a miss in the current observation. `Differs` if the kernel has to run in Python to find its line."""
    observation = current()
    if observation is None:
        return
    file, line = candidate_line()
    if not line:
        raise Differs
    start = f"{file} line {line}: `{name}`"
    misses = observation.missed_loads
    if len(misses) < MAX_REPORTS and not any(miss.startswith(start) for miss in misses):
        where = indices_text(wrong.reshape(-1)).replace("index", noun, 1)
        count = elements_text(wrong.size)
        misses.append(
            f"{start} of {count} outside of {place} ({where}, size {size}) in program {observation.position}"
        )
