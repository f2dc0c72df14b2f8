"""Places of an access: the candidate's line, the allocation, and its bytes, as slices if lanes are neighbours."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.worker.kit.arena import AddressSpan

Addresses = NDArray[np.uint64]
Places = slice | NDArray[np.int64]
"""First byte of each element of an access, counted from the allocation's start."""
_WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_PLUMBING = (str(Path(np.__file__).parent), str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))

Line = tuple[str, int]
UNKNOWN = ("kernel.py", 0)

replayed: Any = SimpleNamespace(line=None)
"""File name and line of an operation that runs without the kernel's frame; see `tracing`."""


@dataclass(slots=True)
class Allocation:
    """Memory that kernels may touch: an input, or a storage that the candidate made. Notes have an entry for each byte."""

    span: AddressSpan
    holder: torch.UntypedStorage
    """Keeps the memory alive, so that two tensors never have the same address."""
    reads: NDArray[np.uint8]
    """1 if the byte was read."""
    writes: NDArray[np.uint8]
    """1 if a kernel stored the byte; `OVERWRITTEN` if the host has overwritten it since."""
    filled: NDArray[np.uint8] | None = None
    """1 if the host filled the byte of an allocation that was made empty; `None`: all bytes are filled."""
    watched: NDArray[np.uint8] | None = None
    """1 for each byte of the storage that watched work left so (`KnownMemory`); `None`: all bytes."""
    storers: NDArray[np.int32] | None = None
    """Number of the program of the running launch that stored an element last, at the element's first byte; 0: none."""


@dataclass(slots=True)
class PointerOrigin:
    """The tensor that a pointer was made from."""

    allocation: Allocation
    pointer: int
    names: tuple[str, ...]
    """Parameters of the kernel that hold the tensor."""


def candidate_line() -> Line:
    """Return file name and line of the candidate's innermost frame; `UNKNOWN` without one.

    While a tape runs, that is the line which the operation had when it was recorded.
    """
    if replayed.line is not None:
        line: Line = replayed.line
        return line
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PLUMBING) and "/triton/" not in file and not file.startswith("<"):
            return Path(file).name, frame.f_lineno
        frame = frame.f_back
    return UNKNOWN


def places_of(start: int, addresses: Addresses, item_bytes: int) -> Places:
    """First bytes of an access, counted from `start`; a slice if lanes are neighbours."""
    offsets = addresses.view(np.int64) - start
    first, last = int(offsets[0]), int(offsets[-1])
    if last - first == (offsets.size - 1) * item_bytes and (offsets[1:] - offsets[:-1] == item_bytes).all():
        return slice(first, last + 1, item_bytes)
    return offsets


def mark(marks: NDArray[np.uint8], places: Places, item_bytes: int) -> None:
    """Set 1 for each byte of the elements of `item_bytes` bytes that begin at `places`, in place.

    Aligned elements are set as words, which is faster and gives the same marks.
    """
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
