"""Lays out the inputs of a case in memory that judge and guest share, with a guard zone around each tensor.

The judge writes them, a guest opens them as tensors, and the judge then sees which bytes the guest changed.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import msgspec
import torch

from harness.wire.calls.tensors import Arguments, TensorSpec

GUARD_BYTES = 4096
MOST_TAIL_BYTES = 1 << 16
"""Bytes of a storage that are laid out behind the tensor, if the tensor begins inside its storage."""
_GUARD = 0xFF
"""NaN as a float, -1 as an integer: a kernel that reads a guard zone gets visibly wrong results."""
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_SEAL_FUTURE_WRITE = 0x10
"""Linux 5.1; missing in Python's `fcntl`."""
Value = torch.Tensor | int | float | bool | str | None


class AddressSpan(NamedTuple):
    """Addresses from `start` up to, not including, `end`."""

    start: int
    end: int

    def meets(self, other: AddressSpan) -> bool:
        """Whether the spans have an address in common."""
        return self.start < other.end and other.start < self.end


class GuardedInputs(ABC):
    """The inputs of one case in memory that other processes can open, with guard zones around each tensor."""

    arguments: Arguments
    size_bytes: int
    _written: dict[str, torch.Tensor]
    """The bytes that the judge wrote, by the name of the input."""

    @abstractmethod
    def _at(self, offset: int, length: int) -> torch.Tensor:
        """A view of the memory's bytes; drop it before the memory is closed."""

    @abstractmethod
    def close(self) -> None:
        """Free the memory."""

    def _fill(self, inputs: Mapping[str, Value]) -> None:
        """Write the inputs into the memory, with guard bytes in all places between them; keep what was written."""
        whole = self._at(0, self.size_bytes)
        whole.fill_(_GUARD)
        self._written = {}
        for name, spec in self._tensors():
            tensor = inputs[name]
            if spec.storage_bytes and isinstance(tensor, torch.Tensor):
                self._written[name] = memory_of(tensor).to(whole.device)
                start, end = self._extent(name, spec)
                self._at(start, end - start).copy_(self._written[name])

    def _tensors(self) -> list[tuple[str, TensorSpec]]:
        return [(name, spec) for name, spec in self.arguments.items() if isinstance(spec, TensorSpec)]

    def refilled(self, inputs: Mapping[str, Value]) -> bool:
        """Write other inputs into the same memory. False, and nothing is written, if their layout differs."""
        if lay_out(inputs) != (self.arguments, self.size_bytes):
            return False
        self._fill(inputs)
        return True

    def blank(self) -> None:
        """Zero the memory. `changed` still compares with the inputs that were written before."""
        self._at(0, self.size_bytes).zero_()

    def changed(self) -> tuple[str, ...]:
        """Names of the inputs that no longer hold the bytes that the judge wrote."""
        return tuple(
            name
            for name, spec in self._tensors()
            if name in self._written and not self._is_unchanged(name, spec)
        )

    def _is_unchanged(self, name: str, spec: TensorSpec) -> bool:
        """True if an input has the bytes that were written, and the guard zones around it are whole."""
        start, end = self._extent(name, spec)
        return (
            torch.equal(self._at(start, end - start), self._written[name])
            and self._is_guard(spec.offset_bytes, start - spec.offset_bytes)
            and self._is_guard(end, spec.tail_bytes)
        )

    def broken_guards(self) -> tuple[str, ...]:
        """Guard zones that were overwritten, in words: the name of the input and the side."""
        broken = []
        for name, spec in self._tensors():
            if not self._is_guard(spec.offset_bytes - GUARD_BYTES, GUARD_BYTES):
                broken.append(f"before the start of `{name}`")
            if not self._is_guard(spec.offset_bytes + spec.storage_bytes, GUARD_BYTES):
                broken.append(f"past the end of `{name}`")
        return tuple(broken)

    def _extent(self, name: str, spec: TensorSpec) -> tuple[int, int]:
        """Offsets of the tensor's first byte and of the byte after its last; the storage may begin before and end after."""
        end = spec.offset_bytes + spec.storage_bytes - spec.tail_bytes
        return end - self._written[name].numel(), end

    def _is_guard(self, offset: int, length: int) -> bool:
        return length == 0 or bool((self._at(offset, length) == _GUARD).all())


class Arena(GuardedInputs):
    """Guarded inputs in host memory, on the judge's side."""

    def __init__(self, inputs: Mapping[str, Value], *, shared: bool = False) -> None:
        """`shared`: several processes get the memory, and none of them may write to it."""
        self.arguments, self.size_bytes = lay_out(inputs)
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, self.size_bytes)
        self._memory = mmap.mmap(self.descriptor, self.size_bytes)
        self._seal(shared=shared)
        self._fill(inputs)

    def _seal(self, *, shared: bool) -> None:
        """Forbid every change of the memory's size, and of the seals.

        `shared`: other processes may not write to it either. Mappings that exist may; the descriptor becomes a read-only one.
        """
        if shared:
            with suppress(
                OSError
            ):  # gVisor's kernel has no such seal; its read-only descriptor below must do
                fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
        if shared:
            writable = self.descriptor
            self.descriptor = os.open(f"/proc/self/fd/{writable}", os.O_RDONLY | os.O_CLOEXEC)
            os.close(writable)

    def close(self) -> None:
        """Free the memory."""
        self._memory.close()
        os.close(self.descriptor)

    def _at(self, offset: int, length: int) -> torch.Tensor:
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=length, offset=offset)


def lay_out(inputs: Mapping[str, Value]) -> tuple[Arguments, int]:
    """The arguments, each tensor at its place (one for all its names) in an arena, and the size of the arena in bytes."""
    arguments: Arguments = {}
    placed: dict[int, TensorSpec] = {}
    offset = GUARD_BYTES
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor):
            arguments[name] = value
            continue
        if id(value) in placed:
            arguments[name] = placed[id(value)]
            continue
        length = span_bytes(value)
        before = int(value.storage_offset()) if length else 0
        length += before * value.element_size()
        tail = min(value.untyped_storage().nbytes() - length, MOST_TAIL_BYTES) if before else 0
        tail -= tail % value.element_size()
        length += tail
        placed[id(value)] = arguments[name] = msgspec.structs.replace(
            describe(value), offset=before, offset_bytes=offset, storage_bytes=length, tail_bytes=tail
        )
        offset += -(-length // GUARD_BYTES) * GUARD_BYTES + 2 * GUARD_BYTES
    return arguments, offset


def open_arguments(descriptor: int, size_bytes: int, arguments: Arguments) -> dict[str, Any]:
    """The arguments by name, for the guest: tensors in the shared memory itself, each storage ending with its tensor."""
    memory = mmap.mmap(descriptor, size_bytes)
    return open_each(arguments, lambda spec: _open(memory, spec))


def open_each(arguments: Arguments, open_tensor: Callable[[TensorSpec], torch.Tensor]) -> dict[str, Any]:
    """The arguments by name, tensors as `open_tensor` returns them. Two names of the same place get the same tensor."""
    opened: dict[TensorSpec, torch.Tensor] = {}
    by_name: dict[str, Any] = {}
    for name, value in arguments.items():
        if isinstance(value, TensorSpec):
            if value not in opened:
                opened[value] = open_tensor(value)
            by_name[name] = opened[value]
        else:
            by_name[name] = value
    return by_name


def _open(memory: mmap.mmap, spec: TensorSpec) -> torch.Tensor:
    """Return the tensor of a specification in the arena's memory; an empty one has memory of its own."""
    dtype = getattr(torch, spec.dtype)
    if spec.storage_bytes == 0:
        return torch.empty_strided(spec.shape, spec.strides, dtype=dtype)
    count = spec.storage_bytes // dtype.itemsize
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=spec.offset_bytes)
    return flat.as_strided(spec.shape, spec.strides, spec.offset)


def describe(tensor: torch.Tensor) -> TensorSpec:
    """Return dtype, shape and strides of a tensor, without its values."""
    shape, strides = (tuple(map(int, sizes)) for sizes in (tensor.shape, tensor.stride()))
    return TensorSpec(dtype_name(tensor.dtype), shape, strides)


def data_of(tensor: torch.Tensor) -> TensorSpec:
    """Return a tensor with its values."""
    return msgspec.structs.replace(describe(tensor), data=storage_bytes(tensor) if tensor.numel() else b"")


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def span_bytes(tensor: torch.Tensor) -> int:
    """Return the bytes from a tensor's first element to its last, gaps of the strides included; 0 without elements."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def span_in_storage(tensor: torch.Tensor) -> slice:
    """The bytes from a tensor's first element to its last, counted from its storage's start."""
    first = tensor.data_ptr() - tensor.untyped_storage().data_ptr() if tensor.numel() else 0
    return slice(first, first + span_bytes(tensor))


def extent(tensor: torch.Tensor) -> AddressSpan:
    """The addresses from a tensor's first element to its last, whatever its strides."""
    start = tensor.data_ptr()
    return AddressSpan(start, start + span_bytes(tensor))


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes from a tensor's first element to its last, as a view of its own memory."""
    count = span_bytes(tensor) // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,)).view(torch.uint8)


def storage_bytes(tensor: torch.Tensor) -> bytes:
    """A copy of the bytes from a tensor's first element to its last."""
    return bytes(memory_of(tensor).cpu().numpy().tobytes())
