"""
A launch tape: what one call did to device memory, as compiled kernels, grids and arguments over numbered buffers.

A timer that holds the candidate makes it; a timer that never sees the candidate plays it, on memory of its own. So the
candidate's host code has no part in what is timed there, and its outputs show that the kernels alone do the work. Torch-free.
"""

from __future__ import annotations

import msgspec

INPUTS = -1
"""Number of the memory in which all inputs lie; buffers that the call allocated count from 0."""


class Span(msgspec.Struct, frozen=True, tag="span"):
    """An address: so many bytes into a buffer."""

    buffer: int
    offset: int


class Scalar(msgspec.Struct, frozen=True, tag="scalar"):
    """A number, by the kernel's own type of it."""

    kind: str
    """As Triton writes it: `i32`, `fp32`."""
    value: int | float


class Launch(msgspec.Struct, frozen=True, tag="launch"):
    """One launch."""

    kernel: int
    grid: tuple[int, int, int]
    arguments: tuple[Span | Scalar, ...]


class Fill(msgspec.Struct, frozen=True, tag="fill"):
    """A whole buffer set to one value."""

    buffer: int
    dtype: str
    value: int | float


class TapedKernel(msgspec.Struct, frozen=True):
    """One compiled kernel."""

    name: str
    binary: bytes
    shared_bytes: int
    threads: int
    """Of a workgroup."""


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
    """Bytes of each."""
    steps: tuple[Launch | Fill, ...]
    outputs: tuple[TapedOutput, ...]
    structure: str
    """`tensor` or `tuple`."""
