"""What an entry point returned, looked at inside the guest: its parts, whether they are plain tensors, what they share."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch

from harness.worker.serving import arena
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


def aliases(part: torch.Tensor, inputs: Mapping[str, torch.Tensor], earlier: Iterable[torch.Tensor]) -> str:
    """What `part` shares memory with: an input or an output of an earlier call; empty when nothing."""
    start, end = part.data_ptr(), part.data_ptr() + arena.span_bytes(part)
    others = [(f"input `{name}`", tensor) for name, tensor in inputs.items()]
    others += [("the output of an earlier call", tensor) for tensor in earlier]
    for name, other in others:
        if start < other.data_ptr() + arena.span_bytes(other) and other.data_ptr() < end:
            return name
    return ""


class Kept:
    """Outputs of the calls so far, held so that no honest allocation gets their memory again."""

    def __init__(self) -> None:
        self._held: deque[torch.Tensor] = deque()
        self._last: tuple[torch.Tensor, ...] = ()
        self._before: list[torch.Tensor] = []

    def keep(self, outputs: tuple[torch.Tensor, ...]) -> None:
        """Holds what one call returned; the oldest go when all together hold more than `HELD_BYTES`."""
        self._last = outputs
        self._before = [arena.memory_of(output).clone() for output in outputs]
        self._held.extend(outputs)
        while len(self._held) > len(outputs) and sum(map(arena.span_bytes, self._held)) > HELD_BYTES:
            self._held.popleft()

    def changed(self) -> bool:
        """Whether any byte that the last call returned is another one by now."""
        return not all(
            torch.equal(arena.memory_of(output), before)
            for output, before in zip(self._last, self._before, strict=True)
        )

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(self._held)
