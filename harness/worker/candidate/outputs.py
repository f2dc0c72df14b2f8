"""What an entry point returned, looked at inside the guest: its parts, whether they are plain tensors, what they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from harness.worker.kit import arena
from suites.dtypes import ITEM_BYTES

HELD_BYTES = 64 << 20


def parts_of(value: Any) -> tuple[str, tuple[Any, ...]]:
    """The structure of what was returned (`tensor`, `tuple` or a type's name), and its parts."""
    if isinstance(value, torch.Tensor):
        return "tensor", (value,)
    if isinstance(value, (tuple, list)):
        return "tuple", tuple(value)
    return type(value).__name__, ()


def plain(parts: Iterable[Any]) -> tuple[torch.Tensor, ...]:
    """Those that are plain, dense tensors."""
    return tuple(part for part in parts if isinstance(part, torch.Tensor) and not problem(part))


def problem(tensor: torch.Tensor) -> str:
    """Why this is no plain, dense tensor; empty when it is one."""
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
    """What `part` shares memory with: an input or an output of an earlier call; empty when nothing."""
    name = in_inputs(part, inputs)
    if name:
        return f"input `{name}`"
    return "the output of an earlier call" if kept.meets(part) else ""


def in_inputs(part: torch.Tensor, inputs: Mapping[str, torch.Tensor]) -> str:
    """The name of the first input that `part` shares memory with; empty when there is none."""
    extent = _extent(part)
    return next((name for name, tensor in inputs.items() if _meet(extent, _extent(tensor))), "")


def share_memory(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether they lie in part in the same place."""
    return _meet(_extent(one), _extent(other))


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """The addresses of its first byte and of the one after its last."""
    start = tensor.data_ptr()
    return start, start + arena.span_bytes(tensor)


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


class Kept:
    """Outputs of the calls so far, held so that no honest allocation gets their memory again."""

    def __init__(self) -> None:
        self._held: deque[tuple[torch.Tensor, tuple[int, int]]] = deque()
        self._bytes = 0
        self._last: tuple[torch.Tensor, ...] = ()
        self._before: list[torch.Tensor] = []

    def keep(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Holds what one call returned; the oldest go when all together hold more than `HELD_BYTES`."""
        self._last = outputs
        self._before = [arena.memory_of(output).clone() for output in outputs]
        for output in outputs:
            start, end = _extent(output)
            self._held.append((output, (start, end)))
            self._bytes += end - start
        while len(self._held) > len(outputs) and self._bytes > HELD_BYTES:
            _, (start, end) = self._held.popleft()
            self._bytes -= end - start

    def changed(self) -> bool:
        """Whether any byte that the last call returned is another one by now."""
        return not all(
            torch.equal(arena.memory_of(output), before)
            for output, before in zip(self._last, self._before, strict=True)
        )

    def meets(self, part: torch.Tensor) -> bool:
        """Whether a tensor shares memory with any of them."""
        extent = _extent(part)
        return any(_meet(extent, held) for _, held in self._held)
