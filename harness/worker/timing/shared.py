"""
Device memory that several processes see: the clock lays inputs out once, timers copy from there, device to device.

By the driver's interprocess handles (CUDA driver API `cuIpcGetMemHandle`; on AMD `hipIpcGetMemHandle`, there unverified).
Where a driver or a container refuses them, inputs go through arenas in host memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from harness.worker.guest import gpu
from harness.worker.serving.arena import Value, lay_out, memory_of
from harness.worker.serving.messages import Argument

_FUNCTIONS = {
    "cuda": (
        "libcuda.so.1",
        (
            "cuMemAlloc_v2",
            "cuMemFree_v2",
            "cuIpcGetMemHandle",
            "cuIpcOpenMemHandle_v2",
            "cuIpcCloseMemHandle",
        ),
    ),
    "hip": (
        "libamdhip64.so",
        ("hipMalloc", "hipFree", "hipIpcGetMemHandle", "hipIpcOpenMemHandle", "hipIpcCloseMemHandle"),
    ),
}
_LAZY_PEER_ACCESS = 1


class NotShared(Exception):
    """The driver does not share memory between these processes."""


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


class _Driver:
    """The five calls, of either vendor."""

    def __init__(self) -> None:
        library, names = _FUNCTIONS["hip" if torch.version.hip else "cuda"]
        try:
            loaded = ctypes.CDLL(library)
            self._allocate, self._free, self._export, self._open, self._close = (
                getattr(loaded, name) for name in names
            )
        except (OSError, AttributeError) as error:
            raise NotShared(str(error)) from error

    def allocate(self, size_bytes: int) -> int:
        address = ctypes.c_uint64()
        _passed(self._allocate(ctypes.byref(address), ctypes.c_size_t(size_bytes)))
        return address.value

    def free(self, address: int) -> None:
        _passed(self._free(ctypes.c_uint64(address)))

    def export(self, address: int) -> bytes:
        handle = _Handle()
        _passed(self._export(ctypes.byref(handle), ctypes.c_uint64(address)))
        return ctypes.string_at(ctypes.byref(handle), 64)

    def open(self, handle: bytes) -> int:
        address = ctypes.c_uint64()
        _passed(
            self._open(
                ctypes.byref(address), _Handle.from_buffer_copy(handle), ctypes.c_uint(_LAZY_PEER_ACCESS)
            )
        )
        return address.value

    def close(self, address: int) -> None:
        _passed(self._close(ctypes.c_uint64(address)))


def _passed(status: int) -> None:
    if status != 0:
        raise NotShared(f"the driver answers {status}")


class SharedInputs:
    """One case's inputs in device memory of their own, for other processes to copy. What they do to it harms no judge."""

    def __init__(self, inputs: Mapping[str, Value]) -> None:
        self.arguments, self.size_bytes = lay_out(inputs)
        self._driver = _Driver()
        self._address = self._driver.allocate(self.size_bytes)
        try:
            self.handle = self._driver.export(self._address)
        except NotShared:
            self._driver.free(self._address)
            raise
        memory = _at(self._address, self.size_bytes)
        memory.fill_(0xFF)
        for argument in self.arguments:
            tensor = inputs[argument.name]
            if argument.storage_bytes and isinstance(tensor, torch.Tensor):
                _own(memory, argument).copy_(memory_of(tensor))
        torch.cuda.synchronize()

    def close(self) -> None:
        """Lets the memory go; who has it open still may read it."""
        torch.cuda.synchronize()
        self._driver.free(self._address)


@contextmanager
def opened(handle: bytes, size_bytes: int) -> Iterator[torch.Tensor]:
    """Another process's `SharedInputs`, as bytes on the device. `NotShared` where that cannot be."""
    torch.cuda.synchronize()  # makes torch's context the current one, by which the driver opens
    driver = _Driver()
    address = driver.open(handle)
    try:
        yield _at(address, size_bytes)
        torch.cuda.synchronize()
    finally:
        driver.close(address)


def _at(address: int, size_bytes: int) -> torch.Tensor:
    storage = torch._C._construct_storage_from_data_pointer(address, gpu.HERE, size_bytes)
    return torch.empty(0, dtype=torch.uint8, device=gpu.HERE).set_(storage, 0, (size_bytes,), (1,))


def _own(memory: torch.Tensor, argument: Argument) -> torch.Tensor:
    """The bytes from a tensor's first element to its last."""
    item = getattr(torch, argument.dtype).itemsize
    start = argument.offset_bytes + argument.storage_offset * item
    return memory[start : argument.offset_bytes + argument.storage_bytes]
