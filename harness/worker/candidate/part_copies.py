"""Recognises host copies into parts of tensors: many of them would do the kernels' work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from harness.wire.calls import operators

_COPYING = operators.SETTING | {"copy_"}


def copies_into_part(name: str, args: Sequence[Any]) -> bool:
    """Return whether the operator `name` copies one tensor into a part of another tensor."""
    if name not in _COPYING:
        return False
    tensors = [value for value in args if isinstance(value, torch.Tensor) and value.layout is torch.strided]
    return len(tensors) > 1 and tensors[0].nbytes < tensors[0].untyped_storage().nbytes()
