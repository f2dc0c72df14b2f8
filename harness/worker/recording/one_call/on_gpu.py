"""Recordings on a GPU: counts and notes launches, and lays guard zones around the inputs of a recorded call.

A read past a tensor's end gives poison there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from triton import knobs

from harness.worker.kit import arena
from harness.worker.kit.poison import Poison, poison
from harness.worker.triton_hooks.launches import handle_compiled_launches

LEAST_BYTES = 64 << 10
MOST_BYTES = 1 << 20
"""Bounds for one zone; between these bounds a zone is as large as the tensor."""


class LaunchCount:
    """Launches of one call. It has the names of the interpreter's observation that `HostOperators` reads."""

    launching = False
    outside: Any = None
    """Not read: on a GPU, `guard_zones` are outside of tensors."""

    def __init__(self) -> None:
        self.launches = 0

    def wrote(self, tensor: torch.Tensor) -> bool:
        """Always true: a GPU does not report which memory a kernel wrote."""
        return True


@contextmanager
def count_launches(_: Mapping[str, torch.Tensor]) -> Iterator[LaunchCount]:
    """Count the launches of Triton kernels in the block. The tensors of the call are not watched on a GPU."""
    count = LaunchCount()

    def note(_: Any) -> None:
        count.launches += 1

    knobs.runtime.launch_enter_hook.add(note)
    try:
        yield count
    finally:
        knobs.runtime.launch_enter_hook.remove(note)


@contextmanager
def noted_launches(note: Callable[[str, Mapping[str, Any]], None]) -> Iterator[None]:
    """Call `note` with the Triton IR of the kernel and with its arguments, for each launch of the block."""

    def handle(kernel: Any, _grid: Any, values: tuple[Any, ...]) -> None:
        names = getattr(getattr(kernel.src, "fn", None), "arg_names", ())
        note(kernel.asm.get("ttir", ""), dict(zip(names, values, strict=False)))

    end = handle_compiled_launches(handle)
    try:
        yield
    finally:
        end()


@contextmanager
def guard_zones(tensors: Iterable[torch.Tensor], kind: Poison) -> Iterator[None]:
    """Move tensors on a GPU between two zones of poison until the block ends; changes of their values stay.

    A reference that reads past an input's end gives different results with a different kind of poison. Such elements are not
    judged. Integers are -1, as in the judge: as a length or an index, -1 does the least harm.
    """
    moved = []
    for tensor in tensors:
        if tensor.is_cuda and tensor.numel():
            original = tensor.data
            tensor.data = _between_zones(original, kind)
            moved.append((tensor, original, arena.memory_of(tensor).clone()))
    try:
        yield
    finally:
        for tensor, original, values in moved:
            if not torch.equal(arena.memory_of(tensor), values):
                original.copy_(tensor.data)
            tensor.data = original


def _between_zones(tensor: torch.Tensor, kind: Poison) -> torch.Tensor:
    """Return a copy of a tensor between guard zones of `kind`, so that a read beside the tensor changes the result.

    Zones of integers are full of 1 bits.
    """
    length = arena.span_bytes(tensor)
    zone = max(LEAST_BYTES, min(MOST_BYTES, length))
    zone -= zone % arena.GUARD_BYTES
    size = 2 * zone + -(-length // arena.GUARD_BYTES) * arena.GUARD_BYTES
    memory = torch.empty(size // tensor.element_size(), dtype=tensor.dtype, device=tensor.device)
    if tensor.is_floating_point() or tensor.is_complex():
        poison(memory, kind)
    else:
        arena.memory_of(memory).fill_(0xFF)
    guarded = memory.as_strided(tensor.shape, tensor.stride(), zone // tensor.element_size())
    arena.memory_of(guarded).copy_(arena.memory_of(tensor))
    return guarded
