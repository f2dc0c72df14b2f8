"""Protects the judge's knowledge of memory: which bytes of a storage watched work left, from call to call."""

from __future__ import annotations

import numpy as np
import torch

from harness.worker.interpreter.known_memory import KnownMemory


def test_bytes_that_nobody_watched_are_found_and_stores_make_them_known() -> None:
    known, tensor = KnownMemory(), torch.zeros(4)
    storage = tensor.untyped_storage()
    assert not known.watched(storage).any()
    known.remember(storage)
    assert known.watched(storage) is None
    tensor[1:3] = 1.0
    watched = known.watched(storage)
    assert watched is not None
    assert watched[:4].all()
    assert not watched[4:12].all()
    watched[4:8] = 1  # a kernel stored the second element
    known.remember_stores(storage, watched)
    watched = known.watched(storage)
    assert watched is not None
    assert watched[:8].all()
    assert not watched[8:12].all()


def test_a_part_of_unknown_memory_does_not_make_the_rest_known() -> None:
    known, tensor = KnownMemory(), torch.ones(4)
    known.remember(tensor.untyped_storage(), slice(4, 8))
    watched = known.watched(tensor.untyped_storage())
    assert watched is not None
    assert np.flatnonzero(watched).tolist() == [4, 5, 6, 7]


def test_a_resized_storage_keeps_what_is_known_of_it() -> None:
    known, tensor = KnownMemory(), torch.ones(2)
    known.remember(tensor.untyped_storage())
    tensor.resize_(1 << 16)
    tensor[2:] = 3.0
    watched = known.watched(tensor.untyped_storage())
    assert watched is not None
    assert watched[:8].all()
    assert not watched[8:12].all()


def test_copies_of_freed_storages_are_dropped() -> None:
    known, tensor = KnownMemory(), torch.ones(4)
    known.remember(tensor.untyped_storage())
    del tensor
    known.forget_freed()
    assert not known._copies
