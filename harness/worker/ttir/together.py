"""
Several programs of a launch at once: what differs among them has them along a first axis, before those of its type.

So each operation is one of numpy's for all of them. Operations between values of one type need know nothing of it, as numpy puts the last axes
in line; the others ask here. It serves programs that go one way and hand each other nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from .kinds import UnknownKind, kind_of
from .text import Block, Operation

Array = Any
Place = tuple[int, int, int]
MOST_LANES = 1 << 16
"""Elements of the largest tensor of all programs that run at once: beyond, numpy's own work outweighs what is saved."""


class Apart(Exception):
    """Programs go different ways, or their order may matter."""


def rank(kind: str) -> int:
    """Of values of a type, in one program."""
    return len(kind_of(kind).shape)


def same(value: Array) -> Any:
    """The one element that all programs have; `Apart` where they do not."""
    if np.ndim(value) == 0:
        return value
    found = np.asarray(value).reshape(-1)
    if (found != found[0]).any():
        raise Apart
    return found[0]


def leading(value: Array, dimensions: int) -> tuple[int, ...]:
    """How many programs there are, of a value that differs among them; else nothing."""
    return np.shape(value)[: np.ndim(value) - dimensions]


def alike(values: Sequence[Array], dimensions: int) -> tuple[Array, ...]:
    """Where one of these differs among programs, all have them along their first axis."""
    programs = max((leading(value, dimensions) for value in values), default=())
    if not programs:
        return tuple(values)
    return tuple(
        value if leading(value, dimensions) else np.broadcast_to(value, (*programs, *np.shape(value)))
        for value in values
    )


def spread(value: Array, dimensions: int) -> Array:
    """A number, or one for each program, to be combined with values of so many dimensions."""
    return value if np.ndim(value) == 0 else np.reshape(value, (-1, *(1,) * dimensions))


def numbers(places: Sequence[Place]) -> tuple[Array, Array, Array]:
    """The programs' places along each axis of the grid."""
    x, y, z = (
        np.int32(axis[0]) if len(set(axis)) == 1 else np.array(axis, dtype=np.int32)
        for axis in zip(*places, strict=True)
    )
    return x, y, z


def shares(places: Iterable[Place], count: int) -> Iterable[list[Place]]:
    """Programs in parts of so many."""
    rest = iter(places)
    while part := list(islice(rest, count)):
        yield part


def largest(blocks: Iterable[Block]) -> int:
    """Elements of the largest tensor that operations give."""
    return max((_largest_of(one) for block in blocks for one in block.operations), default=1)


def _largest_of(operation: Operation) -> int:
    return max((*map(_elements, operation.result_kinds), *map(largest, operation.regions)), default=1)


def _elements(kind: str) -> int:
    try:
        return math.prod(kind_of(kind).shape)
    except UnknownKind:
        return 1


def outside(region: Iterable[Block]) -> set[int]:
    """Values that a region takes from around it."""
    used: set[int] = set()
    made: set[int] = set()
    for block in region:
        made.update(block.arguments)
        for one in block.operations:
            used.update(one.operands, *map(outside, one.regions))
            made.update(one.results)
    return used - made
