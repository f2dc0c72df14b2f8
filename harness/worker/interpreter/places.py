"""Bytes of an allocation that an access touches, as slices if lanes are neighbours, and elements in words for messages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.uint64]
Places = slice | NDArray[np.int64]
"""First byte of each element of an access, counted from the allocation's start."""
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def places_of(start: int, addresses: Addresses, item_bytes: int) -> Places:
    """First bytes of an access, counted from `start`; a slice if lanes are neighbours."""
    offsets = addresses.view(np.int64) - start
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first == (offsets.size - 1) * item_bytes and (offsets[1:] - offsets[:-1] == item_bytes).all():
        return slice(first, last + 1, item_bytes)
    return offsets


def mark(marks: NDArray[np.uint8], places: Places, item_bytes: int) -> None:
    """Set 1 for each byte of the elements that begin at `places`."""
    if isinstance(places, slice):
        marks[places.start : places.stop - 1 + item_bytes] = 1
        return
    word = _WORDS.get(item_bytes)
    if word is not None and marks.size % item_bytes == 0 and not (places & (item_bytes - 1)).any():
        words = places >> (item_bytes.bit_length() - 1)
        marks.view(word)[words] = int.from_bytes(b"\1" * item_bytes, "little")
        return
    for byte in range(item_bytes):
        marks[places + byte] = 1


def elements_text(count: int) -> str:
    """Words such as "1 element" or "3 elements"."""
    return f"{count} element{'s' if count > 1 else ''}"


def indices_text(indices: NDArray[np.int64]) -> str:
    """The first index and the range of all, as "index 3 to 7"."""
    first, least, most = int(indices[0]), int(indices.min()), int(indices.max())
    if least == most:
        return f"index {first}"
    return f"index {least} to {most}" if first == least else f"index {first}, within {least} to {most}"
