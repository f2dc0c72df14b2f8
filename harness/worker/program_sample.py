"""Which programs of a launch to sample, and what a sample says of all of them. Torch-free arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MOST = 64
"""Programs of a sample; a launch of no more runs whole, where that is affordable."""
FEWEST = 12
GOLDEN = 0.6180339887498949
"""Multiples of it, whole parts dropped, spread evenly and never repeat."""


class Total(NamedTuple):
    """A sum over all programs: as the sample's means say, and with each stratum's least and most in their place."""

    mean: int
    low: int
    high: int


class Sample(NamedTuple):
    """Numbers of the programs to run, in the order in which hardware starts them: x fastest."""

    strata: tuple[tuple[int, tuple[int, ...]], ...]
    """Programs in a stratum, and which of them run."""
    group: tuple[int, ...]
    """Neighbours on one die."""
    neighbours: tuple[int, ...]
    """Consecutive ones, over all dies."""
    complete: bool

    @property
    def all(self) -> tuple[int, ...]:
        """Each once, in order."""
        spread = [number for _, numbers in self.strata for number in numbers]
        return tuple(sorted({*spread, *self.group, *self.neighbours}))


class Programs:
    """The programs of one launch of `grid`, dealt out to `dies` in turn (AMD: workgroups go round robin over XCDs)."""

    def __init__(self, grid: tuple[int, int, int], dies: int) -> None:
        self.grid = grid
        self.dies = dies
        self.count = grid[0] * grid[1] * grid[2]
        self.middle = self.count // 2

    def sample(self, affordable: int) -> Sample:
        """About `affordable` programs, within bounds: spread over the grid with its edges, and neighbours."""
        size = max(min(affordable, MOST), FEWEST)
        if self.count <= size:
            everyone = tuple(range(self.count))
            return Sample(((self.count, everyone),), everyone[:: self.dies], everyone, complete=True)
        base = max(min(self.middle, self.count - size), 0)
        group = tuple(range(base, self.count, self.dies))[: size // 3]
        neighbours = tuple(range(base, self.count))[: size // 4]
        return Sample(self._strata(size // 3), group, neighbours, complete=False)

    def extrapolate(self, sample: Sample, value: Callable[[int], int]) -> Total:
        """The sum of `value` over all programs."""
        mean = low = high = 0.0
        for count, numbers in sample.strata:
            values = [value(number) for number in numbers]
            mean += count * sum(values) / len(values)
            low += count * min(values)
            high += count * max(values)
        return Total(round(mean), round(low), round(high))

    def position(self, number: int) -> tuple[int, int, int]:
        """Program ids of the program that is started as `number`, counting from 0."""
        rest, x = divmod(number, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return x, y, z

    def _strata(self, interior: int) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """Programs that are last along each set of axes, and the others: masks differ at the ends of axes."""
        strata = []
        long = [axis for axis in range(3) if self.grid[axis] > 1]
        for choice in range(1 << len(long)):
            last = {axis for bit, axis in enumerate(long) if choice >> bit & 1}
            extent = [1 if axis in last or axis not in long else self.grid[axis] - 1 for axis in range(3)]
            count = extent[0] * extent[1] * extent[2]
            picks = _evenly(count, min(interior if not last else 2, count))
            strata.append((count, tuple(self._number(pick, extent, last) for pick in picks)))
        return tuple(strata)

    def _number(self, pick: int, extent: list[int], last: set[int]) -> int:
        places = []
        for axis in range(3):
            pick, at = divmod(pick, extent[axis])
            places.append(self.grid[axis] - 1 if axis in last else at)
        return places[0] + self.grid[0] * (places[1] + self.grid[1] * places[2])


def _evenly(count: int, wanted: int) -> list[int]:
    """`wanted` of `count` places, the first among them, one in each equal share and never a fixed distance apart.

    A fixed distance can hit the same tile of every row in a grid of rows and tiles.
    """
    share = count / wanted
    return sorted({min(int((at + at * GOLDEN % 1) * share), count - 1) for at in range(wanted)})
