"""Follows copies of the host during one call: elements that it took from memory that no kernel of the call stored to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.wire.calls import operators
from harness.worker.interpreter.known_memory import Bytes
from harness.worker.interpreter.traffic import Observation


class HostCopies:
    """Keeps a mark for each byte of a storage that such a copy reached; a store of a kernel there counts more than the mark.

    Numbers that the host makes, by fills or in Python, are no copies; the judge counts those of Python.
    """

    def __init__(self, observation: Observation, from_kernel: Callable[[torch.Tensor], bool]) -> None:
        """`from_kernel`: whether a kernel of the call stored to a tensor's memory or to the copied memory."""
        self._observation = observation
        self._from_kernel = from_kernel
        self._made: dict[int, torch.UntypedStorage] = {}
        """Storages that this call made, not by copies, by address. Kept alive, so that no second storage has the address."""
        self._marks: dict[int, tuple[torch.UntypedStorage, Bytes]] = {}
        """Storages that copies of the host reached, with a mark for each byte, by address."""

    def note(self, name: str, args: tuple[Any, ...], result: Any) -> None:
        """Note an operator that ran and is no view: a copy passes its marks on, any other result is made by the host.

        `args` are its arguments by position.
        """
        is_set = name == "copy_" or name in operators.SETTING
        if is_set and len(args) > 1 and isinstance(args[1], torch.Tensor):
            self._copy(result, args[1])
        elif name in operators.MOVING:
            self._copy(result, args[0])
        elif isinstance(result, torch.Tensor) and _has_memory(result):
            storage = result.untyped_storage()
            if self._marks_of(storage) is not None:
                self._mark(result, np.zeros((), dtype=bool))
            else:
                self._made[storage.data_ptr()] = storage

    def count(self, tensor: torch.Tensor) -> int:
        """Number of elements that the host copied and no kernel stored."""
        return int(np.count_nonzero(self._copied(tensor))) if _has_memory(tensor) else 0

    def _copy(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Note a copy of the host: the target's elements count as copied where the source's do.

        A source without marks counts as copied as a whole, unless this call made it or a kernel stored to it. Tensors without
        memory are ignored.
        """
        if not (_has_memory(target) and _has_memory(source)):
            return
        storage = source.untyped_storage()
        if self._marks_of(storage) is not None:
            copied = self._copied(source)
        else:
            made = self._made.get(storage.data_ptr())
            is_made = made is not None and made.data_ptr() == storage.data_ptr()  # a resize moves a storage
            copied = np.array(not is_made and not self._from_kernel(source))
        if copied.any() or self._marks_of(target.untyped_storage()) is not None:
            self._mark(target, copied)

    def _mark(self, target: torch.Tensor, copied: NDArray[np.bool_]) -> None:
        """Mark the elements that are copied, also where a kernel stored before."""
        storage = target.untyped_storage()
        marks = self._marks_of(storage)
        if marks is None:
            marks = np.zeros(storage.nbytes(), dtype=np.uint8)
            self._marks[storage.data_ptr()] = storage, marks
        _bytes_of(marks, target)[...] = np.broadcast_to(copied, target.shape)[..., None]
        self._observation.overwrite(target)

    def _copied(self, tensor: torch.Tensor) -> NDArray[np.bool_]:
        """Return for each element of a tensor whether the host copied it and no kernel stored to it since.

        All are false if no copy reached the tensor's storage.
        """
        storage = tensor.untyped_storage()
        marks = self._marks_of(storage)
        if marks is None:
            return np.zeros(tuple(tensor.shape), dtype=bool)
        not_stored = marks & ~self._observation.stored(storage)
        copied: NDArray[np.bool_] = (_bytes_of(not_stored, tensor) != 0).any(-1)
        return copied

    def _marks_of(self, storage: torch.UntypedStorage) -> Bytes | None:
        """Return a storage's marks, one a byte: 1 where a copy of the host wrote.

        Returns `None` if no copy reached the storage, or if it was freed or resized since: another storage may have its
        address.
        """
        kept, marks = self._marks.get(storage.data_ptr(), (None, None))
        if kept is None or marks is None or kept.data_ptr() != storage.data_ptr():
            return None
        return marks if marks.size == storage.nbytes() else None


def _has_memory(tensor: torch.Tensor) -> bool:
    return tensor.layout is torch.strided and tensor.numel() > 0 and tensor.untyped_storage().data_ptr() != 0


def _bytes_of(marks: Bytes, tensor: torch.Tensor) -> Bytes:
    """The marks of a tensor's bytes, the bytes of an element along the last axis; `marks` are those of its storage."""
    size = tensor.element_size()
    strides = (*(stride * size for stride in tensor.stride()), 1)
    first = tensor.storage_offset() * size
    return np.lib.stride_tricks.as_strided(marks[first:], (*tensor.shape, size), strides)
