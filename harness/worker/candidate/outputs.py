"""Examines the return value of an entry point inside the guest: its parts, defects of tensors, shared memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from harness.worker.kit import arena
from suites.dtypes import ITEM_BYTES

HELD_BYTES = 64 << 20


def parts_of(value: Any) -> tuple[str, tuple[Any, ...]]:
    """Structure of a return value (`tensor`, `tuple`, `list` or the name of its type), and its parts."""
    if isinstance(value, torch.Tensor):
        return "tensor", (value,)
    if isinstance(value, (tuple, list)):
        return "tuple" if isinstance(value, tuple) else "list", tuple(value)
    return type(value).__name__, ()


def plain(parts: Iterable[Any]) -> tuple[torch.Tensor, ...]:
    """The parts that are plain, dense tensors."""
    return tuple(part for part in parts if isinstance(part, torch.Tensor) and not problem(part))


def problem(tensor: torch.Tensor) -> str:
    """Return why a tensor is not plain and dense, so that it cannot be judged; empty if it is."""
    if type(tensor) is not torch.Tensor:
        return f"is a {type(tensor).__name__}, not a plain torch.Tensor"
    if tensor.layout is not torch.strided:
        return f"has the layout {tensor.layout}, not a dense one"
    if tensor.device.type not in ("cuda", "cpu"):
        return f"is on the device {tensor.device.type}, not on the GPU"
    if arena.dtype_name(tensor.dtype) not in ITEM_BYTES:
        return f"has the dtype {arena.dtype_name(tensor.dtype)}, which is none that a task asks for"
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        return "shows the same memory several times (a stride of 0)"
    if tensor.is_conj() or tensor.is_neg():
        return "is a lazy conjugate or negative view"
    return ""


def aliases(part: torch.Tensor, inputs: Mapping[str, torch.Tensor], kept: Kept) -> str:
    """Return in words the input or earlier output that `part` shares memory with; empty if there is none."""
    name = in_inputs(part, inputs)
    if name:
        return f"input `{name}`"
    return "the output of an earlier call" if kept.meets(part) else ""


def in_inputs(part: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str:
    """The name of the first input that `part` shares memory with; else empty."""
    extent = arena.extent(part)
    return next((name for name, tensor in inputs.items() if extent.meets(arena.extent(tensor))), "")


def share_memory(first: torch.Tensor, second: torch.Tensor) -> bool:
    """Whether the memory of two tensors overlaps."""
    return arena.extent(first).meets(arena.extent(second))


class Kept:
    """Outputs of earlier calls, kept alive so that no honest allocation gets their memory again."""

    def __init__(self) -> None:
        self._held: deque[tuple[torch.Tensor, arena.AddressSpan]] = deque()
        self._bytes = 0
        self._last: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Each output of the last call, with a copy of its bytes."""

    def keep(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Keep the outputs of a call, with copies of their bytes, until the next call.

        Tensors of earlier calls stay alive too, so that no later output gets their memory; the oldest are dropped above
        `HELD_BYTES`.
        """
        self._last = [(output, arena.memory_of(output).clone()) for output in outputs]
        for output in outputs:
            self._held.append((output, arena.extent(output)))
            self._bytes += arena.span_bytes(output)
        while len(self._held) > len(outputs) and self._bytes > HELD_BYTES:
            _, span = self._held.popleft()
            self._bytes -= span.end - span.start

    def changed(self) -> bool:
        """Whether any byte of the last call's outputs changed since the call."""
        return not all(torch.equal(arena.memory_of(output), before) for output, before in self._last)

    def meets(self, part: torch.Tensor) -> bool:
        """Whether the tensor shares memory with any kept output."""
        extent = arena.extent(part)
        return any(extent.meets(kept) for _, kept in self._held)
