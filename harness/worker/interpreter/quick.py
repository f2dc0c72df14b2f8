"""
Makes Triton's interpreter faster: types, shapes and sizes are computed once instead of for each operation of each program.

Results stay the same. Objects that a kernel could change are made anew each time; only objects that a kernel's text cannot
write to are shared. Touches internals of Triton's interpreter and language (3.6 and 3.7).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import triton.language as tl
from triton.language import core
from triton.runtime import interpreter


def install() -> None:
    """Once a process, before other modules wrap these functions."""
    _np_types()
    _plain_values()
    _blocks()
    _tensors()


def _np_types() -> None:
    """Triton builds and hashes its whole table for each lookup."""
    slow = interpreter._get_np_dtype
    dtypes: dict[str, Any] = {}

    def np_dtype(dtype: Any) -> Any:
        name = dtype.scalar.name
        kind = dtypes.get(name)
        if kind is None:
            kind = dtypes[name] = slow(dtype)
        return kind

    interpreter._get_np_dtype = np_dtype


def _plain_values() -> None:
    """Most values are no constexpr and contain none."""
    unwrap = core._unwrap_if_constexpr
    plain = frozenset(
        {int, float, bool, str, type(None), tl.tensor, tl.dtype, core.block_type, tl.pointer_type}
    )
    equal = tl.dtype.__eq__

    def same(self: Any, other: Any) -> Any:
        return True if self is other else equal(self, other)

    core._unwrap_if_constexpr = lambda value: value if type(value) in plain else unwrap(value)
    tl.dtype.__eq__ = same


def _blocks() -> None:
    """A shape that was valid once stays valid."""
    check = core.block_type.__init__
    checked: dict[tuple[tuple[int, ...], str], tuple[int, str]] = {}

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        kind = type(shape)
        items = shape if kind is list else shape.values if kind is core.tuple else ()
        sizes = tuple([item.value if type(item) is core.constexpr else item for item in items])
        if {*map(type, sizes)} != {int}:
            check(self, element_ty, shape)
            return
        key = sizes, element_ty.name
        entry = checked.get(key)
        if entry is None:
            check(self, element_ty, shape)
            checked[key] = self.numel, self.name
            return
        self.element_ty = element_ty
        self.shape = _sizes(sizes, _constants(sizes)[2])
        self.numel, self.name = entry

    core.block_type.__init__ = init


def _tensors() -> None:
    """The interpreter wraps the sizes anew for each tensor."""

    def init(self: Any, handle: Any, type: Any) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar
        sizes = tuple(type.shape) if isinstance(type, core.block_type) else ()
        self.numel, wrapped, types = _constants(sizes)
        self.shape = _sizes(wrapped, types)

    tl.tensor.__init__ = init


def _sizes(values: tuple[Any, ...], types: tuple[Any, ...]) -> Any:
    """Triton's tuple, as its own `__init__` makes it."""
    sizes = object.__new__(core.tuple)
    sizes.values = list(values)
    sizes.type = core.tuple_type(list(types))
    return sizes


@functools.cache
def _constants(sizes: tuple[int, ...]) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The number of elements and the sizes as constexprs, and the types of the sizes."""
    return (
        core.constexpr(math.prod(sizes)),
        tuple(core.constexpr(size) for size in sizes),
        tuple(core.constexpr_type(size) for size in sizes),
    )
