"""Inputs in memory that judge and guest share, guard zones around each: the judge sees what the guest did to them."""

from __future__ import annotations

import fcntl
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import torch

from harness.wire.guest_messages import Argument

GUARD_BYTES = 4096
MOST_TAIL_BYTES = 1 << 16
"""Of a storage, behind a tensor that begins inside it."""
_GUARD = 0xFF
"""NaN as a float, -1 as an integer: reading it shows."""
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW
_SEAL_FUTURE_WRITE = 0x10
"""Linux 5.1; not among Python's names."""
Value = torch.Tensor | int | float | bool


class GuardedInputs(ABC):
    """One case's inputs, laid out in memory that others reach too, with guard zones around each."""

    arguments: tuple[Argument, ...]
    size_bytes: int
    _given: dict[str, torch.Tensor]

    @abstractmethod
    def _at(self, offset: int, length: int) -> torch.Tensor:
        """Bytes of the memory; to be let go before it is closed."""

    @abstractmethod
    def close(self) -> None:
        """Lets the memory go."""

    def _fill(self, inputs: Mapping[str, Value]) -> None:
        whole = self._at(0, self.size_bytes)
        whole.fill_(_GUARD)
        self._given = {}
        for argument in self.arguments:
            tensor = inputs[argument.name]
            if argument.storage_bytes and isinstance(tensor, torch.Tensor):
                self._given[argument.name] = memory_of(tensor).to(whole.device)
                self._own(argument).copy_(self._given[argument.name])

    def refilled(self, inputs: Mapping[str, Value]) -> bool:
        """Whether other inputs of the very same shapes stand in the memory now, in place of those before."""
        if lay_out(inputs) != (self.arguments, self.size_bytes):
            return False
        self._fill(inputs)
        return True

    def blank(self) -> None:
        """Nothing stands in the memory any more, though `changed` still tells by what the judge wrote."""
        self._at(0, self.size_bytes).zero_()

    def changed(self) -> tuple[str, ...]:
        """Names of the inputs whose bytes are no longer what the judge wrote."""
        return tuple(
            argument.name
            for argument in self.arguments
            if argument.name in self._given
            and not (
                torch.equal(self._own(argument), self._given[argument.name])
                and self._is_guard(argument.offset_bytes, self._start(argument) - argument.offset_bytes)
                and self._is_guard(self._end(argument) - argument.tail_bytes, argument.tail_bytes)
            )
        )

    def broken_guards(self) -> tuple[str, ...]:
        """Names of the inputs whose guard zone was written, with the side."""
        broken = []
        for argument in self.arguments:
            if argument.is_tensor:
                end = self._end(argument)
                if not self._is_guard(argument.offset_bytes - GUARD_BYTES, GUARD_BYTES):
                    broken.append(f"before the start of `{argument.name}`")
                if not self._is_guard(end, GUARD_BYTES):
                    broken.append(f"past the end of `{argument.name}`")
        return tuple(broken)

    def _own(self, argument: Argument) -> torch.Tensor:
        """The bytes of a tensor itself, in its storage."""
        return self._at(self._start(argument), self._length(argument))

    def _start(self, argument: Argument) -> int:
        return self._end(argument) - argument.tail_bytes - self._length(argument)

    def _end(self, argument: Argument) -> int:
        return argument.offset_bytes + argument.storage_bytes

    def _length(self, argument: Argument) -> int:
        return self._given[argument.name].numel()

    def _is_guard(self, offset: int, length: int) -> bool:
        return length == 0 or bool((self._at(offset, length) == _GUARD).all())


class Arena(GuardedInputs):
    """In host memory: the judge's side, written once."""

    def __init__(self, inputs: Mapping[str, Value], *, shared: bool = False) -> None:
        """`shared`: with several processes, which may read it and no more."""
        self.arguments, self.size_bytes = lay_out(inputs)
        self.descriptor = os.memfd_create("inputs", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, self.size_bytes)
        self._memory = mmap.mmap(self.descriptor, self.size_bytes)
        self._seal(shared=shared)
        self._fill(inputs)

    def _seal(self, *, shared: bool) -> None:
        """What is handed out of a shared arena can only be read, also where the kernel (gVisor's) knows no seal for that."""
        if shared:
            with suppress(OSError):
                fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEAL_FUTURE_WRITE)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, _SEALS | fcntl.F_SEAL_SEAL)
        if shared:
            writable, self.descriptor = (
                self.descriptor,
                os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_CLOEXEC),
            )
            os.close(writable)

    def close(self) -> None:
        """Lets the memory go."""
        self._memory.close()
        os.close(self.descriptor)

    def _at(self, offset: int, length: int) -> torch.Tensor:
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=length, offset=offset)


def lay_out(inputs: Mapping[str, Value]) -> tuple[tuple[Argument, ...], int]:
    """Place of each tensor in an arena, the same for one that is there under two names, and the arena's size in bytes."""
    arguments: list[Argument] = []
    known: dict[int, Argument] = {}
    offset = GUARD_BYTES
    for name, value in inputs.items():
        if not isinstance(value, torch.Tensor):
            arguments.append(Argument(name=name, scalar=value))
            continue
        if id(value) in known:
            arguments.append(msgspec.structs.replace(known[id(value)], name=name))
            continue
        length = span_bytes(value)
        before = int(value.storage_offset()) if length else 0
        length += before * value.element_size()
        tail = min(value.untyped_storage().nbytes() - length, MOST_TAIL_BYTES) if before else 0
        tail -= tail % value.element_size()
        length += tail
        arguments.append(
            Argument(
                name=name,
                dtype=dtype_name(value.dtype),
                shape=tuple(value.shape),
                strides=tuple(value.stride()),
                offset_bytes=offset,
                storage_bytes=length,
                tail_bytes=tail,
                storage_offset=before,
            )
        )
        known[id(value)] = arguments[-1]
        offset += -(-length // GUARD_BYTES) * GUARD_BYTES + 2 * GUARD_BYTES
    return tuple(arguments), offset


def open_arguments(descriptor: int, size_bytes: int, arguments: Sequence[Argument]) -> dict[str, Any]:
    """The guest's side: the arguments, tensors in the shared memory itself, each storage ending with its tensor."""
    memory = mmap.mmap(descriptor, size_bytes)
    return open_each(arguments, lambda argument: _open(memory, argument))


def open_each(arguments: Sequence[Argument], open_one: Callable[[Argument], Any]) -> dict[str, Any]:
    """By name what `open_one` makes of each argument, once for those at the same place: a tensor may have two names."""
    opened: dict[Argument, Any] = {}
    found = {}
    for argument in arguments:
        place = msgspec.structs.replace(argument, name="" if argument.is_tensor else argument.name)
        if place not in opened:
            opened[place] = open_one(argument)
        found[argument.name] = opened[place]
    return found


def _open(memory: mmap.mmap, argument: Argument) -> Any:
    if not argument.is_tensor:
        return argument.scalar
    dtype = getattr(torch, argument.dtype)
    if argument.storage_bytes == 0:
        return torch.empty_strided(argument.shape, argument.strides, dtype=dtype)
    count = argument.storage_bytes // dtype.itemsize
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=argument.offset_bytes)
    return flat.as_strided(argument.shape, argument.strides, argument.storage_offset)


def dtype_name(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def span_bytes(tensor: torch.Tensor) -> int:
    """Bytes from the first element to the last, whatever the strides; 0 for a tensor without elements."""
    if tensor.numel() == 0:
        return 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def memory_of(tensor: torch.Tensor) -> torch.Tensor:
    """The memory from a tensor's first element to its last, byte by byte, where it lies."""
    count = span_bytes(tensor) // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,)).view(torch.uint8)


def storage_bytes(tensor: torch.Tensor) -> bytes:
    """The memory from a tensor's first element to its last."""
    return bytes(memory_of(tensor).cpu().numpy().tobytes())
