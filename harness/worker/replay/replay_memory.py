"""The memory of one replay: storages by their number in the record, and the origin of each byte."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import torch
from numpy.typing import NDArray

from harness.wire.calls.records import Address, View, fits
from harness.worker.interpreter.traffic import Observation

from . import shadow
from .replay_endings import Refused

MAX_STORAGE_BYTES = 4 << 30
POISON = 0xFF


class Memory:
    """Holds the storages of a replay by their number in the record."""

    def __init__(self, observation: Observation) -> None:
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.shadows = shadow.Shadows()
        self._observation = observation
        self._written: dict[int, NDArray[np.uint8]] = {}
        """Bytes that earlier launches wrote, by the address of the storage."""

    def bind(self, number: int, storage: torch.UntypedStorage, mark: int) -> None:
        """Give a storage its number, and all of its bytes a mark."""
        self.storages[number] = storage
        self.shadows.add(number, storage.nbytes(), mark)

    def fill(
        self, number: int, size_bytes: int, data: bytes | None, addresses: Iterable[tuple[int, Address]] = ()
    ) -> None:
        """Bind a new storage with the contents from before the call; without `data` it is poison."""
        if not 0 <= size_bytes <= MAX_STORAGE_BYTES:
            raise Refused("the record holds memory of an impossible size")
        memory = torch.empty(size_bytes, dtype=torch.uint8)
        if data:
            memory.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        elif size_bytes:
            memory.fill_(POISON)
        for offset, address in addresses:
            word = torch.tensor([self.address(address)], dtype=torch.int64)
            memory[offset : offset + 8].copy_(word.view(torch.uint8))
        self.bind(number, memory.untyped_storage(), shadow.UNWRITTEN if data is None else shadow.HOST)

    def address(self, address: Address) -> int:
        """The address of a byte as an integer."""
        storage = self.storages[address.storage]
        whole = torch.empty(0, dtype=torch.uint8).set_(storage)
        self._observation.origin(whole)  # no launch argument names this storage
        return int(storage.data_ptr()) + address.offset_bytes

    def tensor(self, view: View) -> torch.Tensor:
        """The tensor that a record's view describes."""
        storage, dtype = self.storages[view.storage], dtype_named(view.dtype)
        if not fits(view, dtype.itemsize, storage.nbytes()):
            raise Refused("the record names a tensor that reaches out of its memory")
        return torch.empty(0, dtype=dtype).set_(storage, view.offset, view.shape, view.strides)

    def note_stores(self) -> None:
        """Mark the bytes that the last launch stored, and reset the counts: a host copy may come before the next launch."""
        numbers = {storage.data_ptr(): number for number, storage in self.storages.items()}
        for address, allocation in self._observation.allocations.items():
            if not allocation.writes.any():
                continue
            number = numbers.get(address)
            if number is not None:
                first_byte = allocation.span.start - address
                self.shadows.store(number, first_byte, torch.from_numpy(allocation.writes))
            before = self._written.get(address)
            self._written[address] = (
                allocation.writes.copy() if before is None else before | allocation.writes
            )
            allocation.writes[:] = 0

    def restore_counts(self) -> None:
        """Put the writes of all launches back into the observation."""
        for address, written in self._written.items():
            self._observation.allocations[address].writes[:] = written


def dtype_named(name: str) -> torch.dtype:
    """`torch.float32` for `float32`."""
    dtype: torch.dtype = getattr(torch, name)
    return dtype
