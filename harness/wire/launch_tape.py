"""
A launch tape: the compiled kernels, grids and arguments of one call, over numbered buffers. Torch-free.

A timer with the candidate makes the tape. A timer that never sees the candidate plays it on its own memory. So the candidate's
host code has no part in the played time, and the played outputs show that the kernels alone do the work.
"""

from __future__ import annotations

import msgspec

INPUTS = -1
"""Number of the buffer that holds all inputs; buffers that the call allocated count from 0."""


class Span(msgspec.Struct, frozen=True, tag="span"):
    """An address: a buffer and an offset in bytes."""

    buffer: int
    offset: int


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    """A number, with its type in the kernel."""

    kind: str
    value: int | float


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """One launch of a kernel."""

    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[Span | Scalar, ...]


class Fill(msgspec.Struct, frozen=True, tag="fill"):
    """Set a whole buffer to one value."""

    buffer: int
    dtype: str
    value: int | float


class TapedKernel(msgspec.Struct, frozen=True):
    """One compiled kernel."""

    name: str
    binary: bytes
    shared_bytes: int
    threads: int


class TapedOutput(msgspec.Struct, frozen=True):
    """One tensor that the call returned."""

    at: Span
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Tape(msgspec.Struct, frozen=True):
    """One call."""

    kernels: tuple[TapedKernel, ...]
    buffers: tuple[int, ...]
    steps: tuple[Launch | Fill, ...]
    outputs: tuple[TapedOutput, ...]
    structure: str
