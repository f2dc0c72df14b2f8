"""Values of records that are of no memory, made again."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import triton.language as tl

from harness.wire.records import Constexpr, Dtype, Items, Value

from .kernels_only import NotAKernel
from .replay_memory import dtype_named


def constant(value: Value, part: Callable[[Value], Any]) -> Any:
    """What a dtype, a tuple, a constant or a plain value stands for, whose parts `part` makes; `NotAKernel` for any other."""
    match value:
        case Dtype(name=name):
            return dtype_named(name)
        case Items(items=items, fields=fields):
            made = tuple(part(one) for one in items)
            if fields:
                return collections.namedtuple("Named", fields)(*made)
            return made
        case Constexpr(value=inner):
            return tl.constexpr(part(inner))
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise NotAKernel("a kernel is given a value that no text has", None)
