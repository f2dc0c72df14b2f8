"""A launch tape: the compiled kernels, grids and arguments of one call, over numbered storages. Torch-free.

A timer with the candidate makes the tape. A timer that never sees the candidate plays it on its own memory. So the candidate's
host code has no part in the played time, and the played outputs show that the kernels alone do the work.
"""

from __future__ import annotations

import msgspec

from .tensors import TensorSpec


class Address(msgspec.Struct, frozen=True, tag="address"):
    """An integer that is an address in a storage."""

    storage: int
    """`INPUTS` for the inputs."""
    offset_bytes: int


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    """A number, with its type in the kernel."""

    kind: str
    value: int | float


class TapedLaunch(msgspec.Struct, frozen=True, tag="launch"):
    """One launch of a kernel."""

    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[Address | Scalar, ...]


class Fill(msgspec.Struct, frozen=True, tag="fill"):
    """Set a whole storage to one value."""

    storage: int
    dtype: str
    value: int | float


class TapedKernel(msgspec.Struct, frozen=True):
    """One compiled kernel."""

    name: str
    binary: bytes
    shared_bytes: int
    threads: int


class Tape(msgspec.Struct, frozen=True, tag="tape"):
    """One call; as a request to a timer: prepare and time it next, not a source."""

    kernels: tuple[TapedKernel, ...]
    storages: tuple[int, ...]
    """Size in bytes of each storage that the call allocated."""
    steps: tuple[TapedLaunch | Fill, ...]
    outputs: tuple[TensorSpec, ...]
    structure: str
