"""Device memory that several processes share: the judge writes the inputs once, guests and timers copy them device to device.

Uses the driver's interprocess handles: `cuIpcGetMemHandle` of the CUDA driver API, `hipIpcGetMemHandle` on AMD (unverified).
If a driver or a container refuses these handles, inputs and outputs go through host memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from harness.wire.messages.guest import SharedAt

from .arena import GuardedInputs, Value, lay_out

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
_OUT_OF_MEMORY = 2
"""`CUDA_ERROR_OUT_OF_MEMORY`, `hipErrorOutOfMemory`."""
_GRANULE_BYTES = 2 << 20
"""A driver shares whole granules. Sizes are rounded up to granules, so that no other memory is shared by accident."""
_DEVICE = torch.device("cuda", 0)
_PLACE_BYTES = 512


class NotShared(Exception):
    """The driver cannot share memory between these processes."""


class _Handle(ctypes.Structure):
    _fields_ = (("bytes", ctypes.c_char * 64),)


class _Driver:
    """The five driver functions that sharing needs, for CUDA or HIP."""

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
        words = f"{status}, out of memory" if status == _OUT_OF_MEMORY else str(status)
        raise NotShared(f"the driver answers {words}")


def rounded(size_bytes: int) -> int:
    """The size rounded up to a multiple of 512, so that the next tensor is aligned for any dtype."""
    return -(-size_bytes // _PLACE_BYTES) * _PLACE_BYTES


class SharedMemory:
    """Device memory of this process that other processes can open and write."""

    def __init__(self, size_bytes: int) -> None:
        """Allocate at least `size_bytes`; raises `NotShared`."""
        self.size_bytes = -(-size_bytes // _GRANULE_BYTES) * _GRANULE_BYTES
        self._driver = _Driver()
        torch.cuda.synchronize()  # makes torch's context the current one, in which the driver allocates
        self._address = self._driver.allocate(self.size_bytes)
        try:
            self.handle = self._driver.export(self._address)
        except NotShared:
            self._driver.free(self._address)
            raise
        self.bytes = _at(self._address, self.size_bytes)
        self.bytes.zero_()  # the driver may reuse memory that this process freed, with oracle outputs in it
        torch.cuda.synchronize()

    @property
    def place(self) -> SharedAt:
        """Handle and size with which other processes open it."""
        return SharedAt(handle=self.handle, size_bytes=self.size_bytes)

    def close(self) -> None:
        """Free the memory; a process that has it open can still read it."""
        torch.cuda.synchronize()
        self._driver.free(self._address)


class DeviceArena(GuardedInputs):
    """Guarded inputs in shared device memory: in `memory`, which its owner closes, or in new memory."""

    def __init__(self, inputs: Mapping[str, Value], memory: SharedMemory | None = None) -> None:
        self.arguments, self.size_bytes = lay_out(inputs)
        self.memory = SharedMemory(self.size_bytes) if memory is None else memory
        self._own_memory = memory is None
        self._fill(inputs)
        torch.cuda.synchronize()

    def refilled(self, inputs: Mapping[str, Value]) -> bool:
        """See `GuardedInputs`."""
        same = super().refilled(inputs)
        torch.cuda.synchronize()
        return same

    def blank(self) -> None:
        """See `GuardedInputs`."""
        super().blank()
        torch.cuda.synchronize()

    def close(self) -> None:
        """Free the memory, unless a caller owns it."""
        if self._own_memory:
            self.memory.close()

    def _at(self, offset: int, length: int) -> torch.Tensor:
        return self.memory.bytes[offset : offset + length]


class OpenedMemory:
    """The `SharedMemory` of a different process; stays open until the next handle is opened."""

    def __init__(self) -> None:
        self._handle = b""
        self._address = 0
        self._bytes: torch.Tensor | None = None

    def at(self, place: SharedAt) -> torch.Tensor:
        """Return the bytes of the judge's memory. It stays open until another handle comes, or `close`. Raises `NotShared`."""
        if self._bytes is None or place.handle != self._handle:
            self.close()
            torch.cuda.synchronize()  # makes torch's context the current one, in which the driver opens memory
            self._address = _Driver().open(place.handle)
            try:
                self._handle, self._bytes = place.handle, _at(self._address, place.size_bytes)
            except BaseException:
                _Driver().close(self._address)
                raise
        return self._bytes

    def close(self) -> None:
        """Close the memory; its bytes may not be used after this."""
        if self._bytes is not None:
            self._bytes = None
            torch.cuda.synchronize()
            _Driver().close(self._address)


@contextmanager
def opened(handle: bytes, size_bytes: int) -> Iterator[torch.Tensor]:
    """The bytes of a different process's `SharedMemory`, open until the block ends; raises `NotShared`."""
    memory = OpenedMemory()
    try:
        yield memory.at(SharedAt(handle, size_bytes))
    finally:
        memory.close()


def _at(address: int, size_bytes: int) -> torch.Tensor:
    storage = torch._C._construct_storage_from_data_pointer(address, _DEVICE, size_bytes)
    return torch.empty(0, dtype=torch.uint8, device=_DEVICE).set_(storage, 0, (size_bytes,), (1,))
