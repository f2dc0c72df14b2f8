"""What an entry point returned, looked at inside the guest: its parts, whether they are plain tensors, what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from suites.dtypes import ITEM_BYTES

from . import arena


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


def aliases(part: torch.Tensor, inputs: Mapping[str, torch.Tensor], last: tuple[torch.Tensor, ...]) -> str:
    """What `part` shares memory with: an input or an output of the call before; empty when nothing."""
    start, end = part.data_ptr(), part.data_ptr() + arena.span_bytes(part)
    others = [(f"input `{name}`", tensor) for name, tensor in inputs.items()]
    others += [("the output of the call before", tensor) for tensor in last]
    for name, other in others:
        if start < other.data_ptr() + arena.span_bytes(other) and other.data_ptr() < end:
            return name
    return ""


class Kept:
    """The outputs of one call, and what they were when it returned."""

    def __init__(self, outputs: tuple[torch.Tensor, ...] = ()) -> None:
        self.outputs = outputs
        self._before = [arena.memory_of(output).clone() for output in outputs]

    def changed(self) -> bool:
        """Whether any of their bytes is another one by now."""
        return not all(
            torch.equal(arena.memory_of(output), before)
            for output, before in zip(self.outputs, self._before, strict=True)
        )
