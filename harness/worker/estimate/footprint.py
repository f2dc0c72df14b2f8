"""Sets of touched bytes, as sorted, disjoint intervals of addresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Addresses = NDArray[np.int64]


class Footprint(NamedTuple):
    """Half-open intervals [start, end)."""

    starts: Addresses
    ends: Addresses

    @property
    def size(self) -> int:
        """Distinct bytes; only correct for a footprint from `union`."""
        return int((self.ends - self.starts).sum())


EMPTY = Footprint(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


def of_access(addresses: NDArray[np.uint64], mask: NDArray[np.bool_] | None, item_bytes: int) -> Footprint:
    """The bytes of one access, from one address per lane; intervals may overlap.

    Lanes are walked along their contiguous axis, so a transposed tile has as few intervals as a plain tile.
    """
    lanes = addresses.view(np.int64)
    if lanes.ndim > 1:
        axis = _contiguous_axis(lanes, item_bytes)
        if axis != lanes.ndim - 1:
            lanes = np.moveaxis(lanes, axis, -1)
            mask = None if mask is None else np.moveaxis(mask, axis, -1)
    flat = lanes.ravel() if mask is None else lanes[mask]
    if flat.size == 0:
        return EMPTY
    breaks = np.flatnonzero(np.diff(flat) != item_bytes)
    starts = flat[np.concatenate([[0], breaks + 1])]
    ends = flat[np.concatenate([breaks, [flat.size - 1]])] + item_bytes
    return Footprint(starts, ends)


def union(parts: Iterable[Footprint]) -> Footprint:
    """All bytes of the parts, as merged intervals."""
    parts = [part for part in parts if part.starts.size]
    if not parts:
        return EMPTY
    starts = np.concatenate([part.starts for part in parts])
    ends = np.concatenate([part.ends for part in parts])
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    first = np.concatenate([[True], starts[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return Footprint(starts[first], reach[last])


def _contiguous_axis(lanes: Addresses, item_bytes: int) -> int:
    """The axis on which the first two lanes are neighbours in memory; the last axis if there is none."""
    origin = (0,) * lanes.ndim
    for axis in reversed(range(lanes.ndim)):
        if lanes.shape[axis] > 1:
            neighbour = tuple(int(at == axis) for at in range(lanes.ndim))
            if lanes[neighbour] - lanes[origin] == item_bytes:
                return axis
    return lanes.ndim - 1
