"""Guard zones around the input tensors of a recorded call on a GPU: reads past a tensor's end then give poison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch

from harness.worker.kit import arena
from harness.worker.kit.poison import Poison, poison

LEAST_BYTES = 64 << 10
MOST_BYTES = 1 << 20
"""Bounds for one zone; between them it is as large as the tensor."""


@contextmanager
def guard_zones(tensors: Iterable[torch.Tensor], kind: Poison) -> Iterator[None]:
    """Move tensors on a GPU between two zones of poison until the block ends; changes of their values stay.

    A reference that reads past an input's end gives other results with another kind of poison. Such elements are not judged.
    Kinds: NaN, else values like results; a sum with very large values would overflow to NaN again. Integers are -1, as in the
    judge: as a length or an index it does the least harm.
    """
    moved = []
    for tensor in tensors:
        if tensor.is_cuda and tensor.numel():
            old = tensor.data
            tensor.data = _between_zones(old, kind)
            moved.append((tensor, old, arena.memory_of(tensor).clone()))
    try:
        yield
    finally:
        for tensor, old, before in moved:
            if not torch.equal(arena.memory_of(tensor), before):
                old.copy_(tensor.data)
            tensor.data = old


def _between_zones(tensor: torch.Tensor, kind: Poison) -> torch.Tensor:
    length = arena.span_bytes(tensor)
    zone = max(LEAST_BYTES, min(MOST_BYTES, length))
    zone -= zone % arena.GUARD_BYTES
    size = 2 * zone + -(-length // arena.GUARD_BYTES) * arena.GUARD_BYTES
    memory = torch.empty(size // tensor.element_size(), dtype=tensor.dtype, device=tensor.device)
    if tensor.is_floating_point() or tensor.is_complex():
        poison(memory, Poison.NAN if kind is Poison.NAN else Poison.RESULTS)
    else:
        arena.memory_of(memory).fill_(0xFF)
    guarded = memory.as_strided(tensor.shape, tensor.stride(), zone // tensor.element_size())
    arena.memory_of(guarded).copy_(arena.memory_of(tensor))
    return guarded
