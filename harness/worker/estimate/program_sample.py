"""Which programs of a launch to sample, and what a sample says of all of them. Torch-free arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MOST = 96
"""Programs of a sample; a launch of no more runs whole, where that is affordable."""
FEWEST = 8
GOLDEN = 0.6180339887498949
"""Multiples of it, whole parts dropped, spread evenly and never repeat."""


class Total(NamedTuple):
    """A sum over all programs: as each stratum's mean says, and with its least and its most in place of the mean."""

    mean: int
    low: int
    high: int


class Stratum(NamedTuple):
    """Programs of one kind."""

    programs: int
    spread: tuple[int, ...]
    """Those that stand for all, spread evenly."""
    others: tuple[int, ...]
    """Those of the kind that run besides, close to each other: they widen the range, and would bias the mean."""


class Sample(NamedTuple):
    """Numbers of the programs to run, in the order in which hardware starts them: x fastest."""

    strata: tuple[Stratum, ...]
    group: tuple[int, ...]
    """Neighbours on one die."""
    complete: bool

    @property
    def all(self) -> tuple[int, ...]:
        """Each once, in order."""
        return tuple(sorted(number for _, spread, others in self.strata for number in (*spread, *others)))


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
            whole = Stratum(self.count, everyone, ())
            return Sample((whole,), everyone[:: self.dies], complete=True)
        base = max(min(self.middle, self.count - size), 0)
        group = tuple(range(base, self.count, self.dies))[: max(size // 4, 4)]
        neighbours = tuple(range(base, self.count))[: size // 8]
        return Sample(self._strata(size // 2, {*group, *neighbours}), group, complete=False)

    def extrapolate(self, sample: Sample, value: Callable[[int], int]) -> Total:
        """The sum of `value` over all programs."""
        if sample.complete:
            exact = sum(value(number) for number in range(self.count))
            return Total(exact, exact, exact)
        mean = low = high = 0.0
        for count, spread, others in sample.strata:
            values = [value(number) for number in spread]
            mean += count * sum(values) / len(values)
            values += [value(number) for number in others]
            low += count * min(values)
            high += count * max(values)
        return Total(round(mean), round(low), round(high))

    def position(self, number: int) -> tuple[int, int, int]:
        """Program ids of the program that is started as `number`, counting from 0."""
        rest, x = divmod(number, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return x, y, z

    def _strata(self, interior: int, besides: set[int]) -> tuple[Stratum, ...]:
        """Programs that are last along each set of axes, and the others: masks differ at the ends of axes."""
        strata = []
        long = [axis for axis in range(3) if self.grid[axis] > 1]
        for choice in range(1 << len(long)):
            last = {axis for bit, axis in enumerate(long) if choice >> bit & 1}
            extent = [1 if axis in last or axis not in long else self.grid[axis] - 1 for axis in range(3)]
            count = extent[0] * extent[1] * extent[2]
            wanted = interior if not last else max(interior // 8, 1)
            picks = _evenly(count, min(wanted, count))
            spread = tuple(self._number(pick, extent, last) for pick in picks)
            others = tuple(sorted(at for at in besides.difference(spread) if self._last(at) == last))
            strata.append(Stratum(count, spread, others))
        return tuple(strata)

    def _last(self, number: int) -> set[int]:
        """The axes along which it is the last, of those that have more than one."""
        places = self.position(number)
        return {axis for axis in range(3) if self.grid[axis] > 1 and places[axis] == self.grid[axis] - 1}

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
