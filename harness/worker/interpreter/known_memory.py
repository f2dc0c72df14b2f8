"""The bytes of storages as watched work left them: inputs, operators that the guest sees, and stores of kernels.

A storage with other bytes was written where nobody watches: in a thread, with a mode of torch turned off, or by numpy. A kernel
that loads such bytes did not compute them.
"""

from __future__ import annotations

import ctypes

import numpy as np
import torch
from numpy.typing import NDArray
from torch.multiprocessing.reductions import StorageWeakRef

Bytes = NDArray[np.uint8]


class KnownMemory:
    """Keeps a copy of each storage from one call of a candidate to the next, without keeping the storage alive."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[StorageWeakRef, Bytes]] = {}

    def remember(self, storage: torch.UntypedStorage, span: slice = slice(None)) -> None:
        """Keep the bytes of `span` as they are now: watched work, as the module defines it, wrote them.

        `span` counts from the storage's start. Of a storage that is new here or was resized, all other bytes count as
        unwatched.
        """
        now, copy = bytes_of(storage), self._copy_of(storage)
        if copy is None or copy.size != now.size:
            copy = ~now  # differs from every byte, so that only `span` counts as watched
            self._copies[storage._cdata] = StorageWeakRef(storage), copy  # type: ignore[no-untyped-call]
        copy[span] = now[span]

    def remember_stores(self, storage: torch.UntypedStorage, watched: Bytes | None) -> None:
        """Kernels left the bytes that are 1 in `watched`; `None`: all of them."""
        if watched is None:
            self.remember(storage)
            return
        now, copy = bytes_of(storage), self._copy_of(storage)
        if copy is not None and copy.size == now.size == watched.size:
            np.copyto(copy, now, where=watched.view(np.bool_))

    def watched(self, storage: torch.UntypedStorage) -> Bytes | None:
        """1 for each byte that watched work left so; `None` if all are."""
        now, copy = bytes_of(storage), self._copy_of(storage)
        if copy is not None and np.array_equal(copy, now):
            return None
        watched = np.zeros(now.size, dtype=np.uint8)
        if copy is not None:
            size = min(copy.size, now.size)  # a storage may have been resized
            watched[:size] = copy[:size] == now[:size]
        return watched

    def forget_freed(self) -> None:
        """Drop the copies of storages that no longer exist."""
        self._copies = {key: kept for key, kept in self._copies.items() if _exists(kept[0])}

    def _copy_of(self, storage: torch.UntypedStorage) -> Bytes | None:
        reference, copy = self._copies.get(storage._cdata, (None, None))
        return copy if reference is not None and _exists(reference) else None


def bytes_of(storage: torch.UntypedStorage) -> Bytes:
    """The bytes of a storage in the CPU's memory, as a view that no mode of torch sees."""
    size, address = storage.nbytes(), storage.data_ptr()
    if not size or not address:
        return np.zeros(0, dtype=np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def _exists(reference: StorageWeakRef) -> bool:
    return not reference.expired()  # type: ignore[no-untyped-call]
