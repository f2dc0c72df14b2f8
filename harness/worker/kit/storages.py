"""Parts of torch as they were before the guest patched them, and what may be an address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

NUMPY = torch.Tensor.numpy
"""`Tensor.numpy` before the guest counts its calls, for reads by the judge. Disable torch's modes around a call: they would
look up the patched method."""
LOWEST_ADDRESS = 1 << 32
"""Integers from here on may be addresses; smaller integers are numbers."""
WORDS = (torch.int64, torch.uint64)
"""Dtypes with elements that may be addresses."""
DEVICE: Callable[[torch.UntypedStorage], torch.device] = torch.UntypedStorage.device.__get__
"""The true device of a storage, also where `cuda_shim` patches the property."""


def hide_allocator() -> None:
    """Report every storage as resizable. The judge's storages, which torch did not allocate, would be recognised by that."""
    kind: Any = torch.UntypedStorage
    kind.resizable = lambda storage: True  # noqa: ARG005 -- replaces a method
