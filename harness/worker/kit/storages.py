"""Reads torch storages past the patches of a guest: their bytes, their addresses, the addresses that they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from harness.wire.calls.records import LOWEST_ADDRESS, Address

NUMPY = torch.Tensor.numpy
"""`Tensor.numpy` before the guest counts its calls, for reads by the recorder. Disable torch's modes around a call: they would
look up the patched method."""
WORDS = (torch.int64, torch.uint64)
"""Dtypes with elements that may be addresses."""
DEVICE: Callable[[torch.UntypedStorage], torch.device] = torch.UntypedStorage.device.__get__
"""The true device of a storage, also where `cuda_shim` patches the property."""


def hide_allocator() -> None:
    """Report every storage as resizable. The judge's storages, which torch did not allocate, would be recognised by that."""
    kind: Any = torch.UntypedStorage
    kind.resizable = lambda storage: True  # noqa: ARG005 -- replaces a method


def addresses(data: bytes, find: Callable[[int], Address | None]) -> tuple[tuple[int, Address], ...]:
    """The 8-byte words that `find` recognises as addresses, each with its offset in bytes."""
    words = np.frombuffer(data[: len(data) & -8], dtype=np.int64).tolist()
    recognised = ((index * 8, find(word)) for index, word in enumerate(words) if word >= LOWEST_ADDRESS)
    return tuple((offset, address) for offset, address in recognised if address is not None)


def holder(address: int, storages: Iterable[torch.UntypedStorage]) -> torch.UntypedStorage | None:
    """The first storage that contains the address."""
    for storage in storages:
        start = storage.data_ptr()
        if start and start <= address < start + max(storage.nbytes(), 1):
            return storage
    return None


def plain_tensors(objects: Iterable[Any]) -> Iterator[torch.Tensor]:
    """The tensors among the objects that have memory."""
    for item in objects:
        # `type`, because `isinstance` asks proxies for their class, and some of them warn.
        if issubclass(type(item), torch.Tensor) and item.layout is torch.strided and not item.is_meta:
            yield item


def read_bytes(storage: torch.UntypedStorage) -> bytes:
    """A copy of the bytes of a storage."""
    with torch._C.DisableTorchFunction():
        flat: torch.Tensor = torch.empty(0, dtype=torch.uint8).set_(storage)
        return bytes(NUMPY(flat).tobytes())
