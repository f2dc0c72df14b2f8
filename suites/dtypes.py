"""Names of torch dtypes and their sizes, known without torch."""

from __future__ import annotations

ITEM_BYTES: dict[str, int] = {
    "float64": 8,
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "float8_e4m3fn": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2": 1,
    "float8_e5m2fnuz": 1,
    "int64": 8,
    "int32": 4,
    "int16": 2,
    "int8": 1,
    "uint8": 1,
    "bool": 1,
}
"""Bytes an element, by the dtype's name: every dtype that a task may use."""


def item_bytes(dtype: str) -> int:
    """Bytes of one element; `ValueError` for a name that is no dtype of a task."""
    if dtype not in ITEM_BYTES:
        raise ValueError(f"{dtype!r} is no dtype; one of {', '.join(ITEM_BYTES)}")
    return ITEM_BYTES[dtype]
