"""The memory of a replay: what lives from call to call, and the marks of who made each byte."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.worker.interpreter import whereabouts
from harness.worker.interpreter.past import INPUTS
from harness.worker.interpreter.traffic import Observation
from harness.worker.serving import poison
from harness.worker.serving.records import Address, View, fits

from . import shadow
from .endings import NotKnown, Refused
from .host_copies import HostCopies, flat
from .lasting import Lasting

MAX_STORAGE_BYTES = 4 << 30


class Memory:
    """Storages by their number in records."""

    def __init__(self, device: str) -> None:
        """`device`: as torch calls it."""
        self.device = device
        self.storages: dict[int, torch.UntypedStorage] = {}
        self.shadows = shadow.Shadows()
        self.lasting = Lasting()
        self.copies = HostCopies()
        self.gap = False
        """Calls before this one were not replayed: memory of theirs is not known."""
        self.elsewhere = 0
        """Whose device it is that the call is made on; 0 for the interpreter's own."""
        self.observation: Observation | None = None
        """Of the call."""
        self.held: dict[int, bytes] = {}
        """What there was before the call."""
        self._marks: dict[int, torch.Tensor] = {}
        self._bytes: dict[int, NDArray[np.uint8]] = {}
        """Of storages that the CPU sees, in place."""
        self._addressed: set[int] = set()
        """Storages whose addresses were put into memory or handed to kernels: later calls may go by them."""

    def forget(self, numbers: Iterable[int]) -> None:
        """Lets memory go that no later step names."""
        for number in numbers:
            self.storages.pop(number, None)
            self._bytes.pop(number, None)
            self.shadows.forget(number)
            self.lasting.forget(number)

    def keep(self) -> None:
        """Remembers the memory that outlives calls."""
        self.held = {number: self.contents(number).tobytes() for number in self.storages}
        self._marks = self.shadows.snapshot()

    def restore(self) -> None:
        """Memory that outlives calls goes back to what it was."""
        self.storages = {number: storage for number, storage in self.storages.items() if number in self.held}
        self._bytes = {number: memory for number, memory in self._bytes.items() if number in self.held}
        for number, storage in self.storages.items():
            if self.held[number]:
                flat(storage).copy_(torch.frombuffer(bytearray(self.held[number]), dtype=torch.uint8))
        self.shadows.restore(self._marks)
        self.lasting.rewind(self.storages)

    def is_as_held(self, but: Collection[int]) -> bool:
        """Whether all memory is what it was before the call, `but` for some."""
        return all(
            self.contents(number).tobytes() == self.held.get(number)
            for number in self.storages
            if number not in but
        )

    def contents(self, number: int) -> NDArray[np.uint8]:
        """The bytes of a storage as they are now: in place where the CPU sees it, else a copy."""
        seen = self._bytes.get(number)
        return flat(self.storages[number]).cpu().numpy() if seen is None else seen

    def observe(self, observation: Observation, inputs: Collection[int]) -> None:
        """The call begins, whose kernels are watched so."""
        self.observation = observation
        for number, storage in self.storages.items():
            observation.pasts[storage.data_ptr()] = self.lasting.past(number)
        self._addressed &= self.storages.keys()
        for number in self._addressed:
            observation.origin(flat(self.storages[number]))
        for number in inputs:
            address = self.storages[number].data_ptr()
            if address in observation.allocations:
                observation.allocations[address].past = observation.pasts[address]
            self.lasting.past(number).level = INPUTS

    def bind(self, number: int, storage: torch.UntypedStorage, mark: int) -> None:
        """Memory gets its number, and all of it a mark."""
        self.storages[number] = storage
        if storage.device.type == "cpu":
            self._bytes[number] = flat(storage).numpy()
        self.shadows.add(number, storage.nbytes(), mark)
        past = self.lasting.add(number, storage.nbytes())
        if self.observation is not None:
            self.observation.pasts[storage.data_ptr()] = past

    def fill(
        self, number: int, size_bytes: int, data: bytes | None, addresses: Iterable[tuple[int, Address]] = ()
    ) -> None:
        """Memory from the host; memory that was there before and has no bytes is poison, unless it is known."""
        if number in self.storages and data is None:
            return
        if not 0 <= size_bytes <= MAX_STORAGE_BYTES or (data is not None and len(data) != size_bytes):
            raise Refused("the record holds memory of another size than it says")
        memory = torch.empty(size_bytes, dtype=torch.uint8, device=self.device)
        if data:
            memory.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        elif size_bytes:
            memory.fill_(0xFF)
            if self.elsewhere:
                poison.other(memory, self.elsewhere)
        for place, address in addresses:
            if not 0 <= place <= size_bytes - 8:
                raise Refused("the record holds an address outside its memory")
            word = torch.tensor([self.address(address)], dtype=torch.int64)
            memory[place : place + 8].copy_(word.view(torch.uint8))
        self.bind(number, memory.untyped_storage(), shadow.UNWRITTEN if data is None else shadow.HOST)
        if data is not None:
            self.lasting.hold(number, memory.cpu().numpy())

    def poison(self, tensor: torch.Tensor) -> None:
        """Other bytes elsewhere: kernels that ask memory whether nobody wrote it answer otherwise there."""
        if self.elsewhere and tensor.numel():
            poison.other(tensor, self.elsewhere)
        else:
            poison.poison(tensor)

    def address(self, address: Address) -> int:
        """Of a byte, on the device that the call is made on."""
        storage = self.storages.get(address.storage)
        if storage is None or not 0 <= address.offset_bytes <= storage.nbytes():
            raise Refused("the record holds an address of no memory")
        self._addressed.add(address.storage)
        start = int(storage.data_ptr())
        if self.observation is not None:
            self.observation.origin(flat(storage))  # no launch argument will name it
            if self.observation.programs.elsewhere:
                start = whereabouts.place(self.observation, start)
        return start + address.offset_bytes

    def tensor(self, view: View) -> torch.Tensor:
        """What a record's view shows."""
        storage = self.storages.get(view.storage)
        dtype = dtype_named(view.dtype)
        if storage is None and self.gap:
            raise NotKnown("memory of a call that was not replayed")
        if storage is None:
            raise Refused("the record names memory that nothing made")
        if not fits(view, dtype.itemsize, storage.nbytes()):
            raise Refused("the record names a tensor that reaches out of its memory")
        empty = torch.empty(0, dtype=dtype, device=self.device)
        return empty.set_(storage, view.offset, view.shape, view.strides)

    def is_left(self, view: View) -> bool:
        """Whether any of it is what an earlier call left."""
        return self.lasting.is_left(view, dtype_named(view.dtype).itemsize)

    def is_part(self, view: View) -> bool:
        """Whether its memory is larger."""
        return math.prod(view.shape) * dtype_named(view.dtype).itemsize < self.storages[view.storage].nbytes()

    def note_stores(self, totals: dict[int, Any]) -> None:
        """What a launch stored is its own now; counted anew for the next one, as a host copy may come between."""
        assert self.observation is not None
        numbers = {storage.data_ptr(): number for number, storage in self.storages.items()}
        for address, known in self.observation.allocations.items():
            if not known.writes.any():
                continue
            number = numbers.get(address)
            if number is not None:
                first = known.span.start - address
                self.shadows.store(number, first, torch.from_numpy(known.writes))
                past = self.observation.read_past
                self.lasting.store(number, first, known.writes, past, self.contents(number))
            seen = totals.get(address)
            totals[address] = known.writes.copy() if seen is None else seen | known.writes
            known.writes[:] = 0


def dtype_named(name: str) -> torch.dtype:
    """`torch.float32` for `float32`; `Refused` where torch has none of that name."""
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise Refused(f"the record names a dtype {name!r}")
    return dtype
