"""Types of Triton's IR, and the numpy arrays that hold their values here.

Integers have no sign in the IR; here they are signed, and unsigned operations look at them otherwise. Pointers are int64.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

POINTER = np.dtype(np.int64)
_ELEMENTS: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "f8E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
}
FLOAT8 = {
    _ELEMENTS["f8E4M3FN"]: "fp8e4nv",
    _ELEMENTS["f8E5M2"]: "fp8e5",
    _ELEMENTS["f8E4M3FNUZ"]: "fp8e4b8",
    _ELEMENTS["f8E5M2FNUZ"]: "fp8e5b16",
}
"""By Triton's names in its language."""
_TENSOR = re.compile(r"tensor<((?:\d+x)*)(.*)>$")
_POINTER = re.compile(r"!tt\.ptr<(.*?)(?:, \d+)?>$")


class UnknownKind(Exception):
    """A type that there is no array for."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Of one value."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    """Of its elements; `POINTER` where they point."""
    pointee: np.dtype[Any] | None = None
    """What pointers point at."""


@functools.cache
def kind_of(text: str) -> Kind:
    """The type that the IR writes so; `UnknownKind` for any other than of numbers and pointers."""
    tensor = _TENSOR.match(text)
    shape: tuple[int, ...] = ()
    if tensor:
        shape = tuple(int(size) for size in tensor[1].split("x")[:-1])
        text = tensor[2]
    pointer = _POINTER.match(text)
    if pointer:
        return Kind(shape, POINTER, _element(pointer[1]))
    return Kind(shape, _element(text))


def _element(text: str) -> np.dtype[Any]:
    if text.startswith("!tt.ptr<"):
        return POINTER
    found = _ELEMENTS.get(text)
    if found is None:
        raise UnknownKind(text)
    return found
