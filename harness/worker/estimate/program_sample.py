"""Chooses the programs of a launch to sample, and extrapolates a sum from them to all programs. Torch-free."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MOST = 96
"""Programs of a sample at most. A launch with fewer programs runs whole if that is affordable."""
FEWEST = 8
GOLDEN = 0.6180339887498949
"""The fractional parts of its multiples are evenly spread and never repeat."""


class Total(NamedTuple):
    """A sum over all programs, computed from each stratum's mean, minimum and maximum."""

    mean: int
    low: int
    high: int


class Stratum(NamedTuple):
    """Programs with the same kind of place in the grid."""

    programs: int
    spread: tuple[int, ...]
    """Sampled programs, evenly spread: they give the mean."""
    neighbours: tuple[int, ...]
    """Sampled programs close to each other: they widen the range only, because they would bias the mean."""


class ProgramSample(NamedTuple):
    """The programs to run, by number. Hardware starts programs in this order, x fastest."""

    strata: tuple[Stratum, ...]
    group: tuple[int, ...]
    """Neighbours that share one die."""
    complete: bool

    @property
    def all(self) -> tuple[int, ...]:
        """Sorted, without repeats."""
        return tuple(
            sorted(number for _, spread, neighbours in self.strata for number in (*spread, *neighbours))
        )


class LaunchGrid:
    """The programs of one launch. The hardware deals them to its dies in turn (AMD: round robin over XCDs)."""

    def __init__(self, grid: tuple[int, int, int], dies: int) -> None:
        self.grid = grid
        self.dies = dies
        self.count = grid[0] * grid[1] * grid[2]
        self.middle = self.count // 2

    def sample(self, affordable: int) -> ProgramSample:
        """Choose about `affordable` programs: spread over the grid, on its edges, and neighbours."""
        size = max(min(affordable, MOST), FEWEST)
        if self.count <= size:
            everyone = tuple(range(self.count))
            whole = Stratum(self.count, everyone, ())
            return ProgramSample((whole,), everyone[:: self.dies], complete=True)
        base = max(min(self.middle, self.count - size), 0)
        group = tuple(range(base, self.count, self.dies))[: max(size // 4, 4)]
        neighbours = tuple(range(base, self.count))[: size // 8]
        return ProgramSample(self._strata(size // 2, {*group, *neighbours}), group, complete=False)

    def extrapolate(self, sample: ProgramSample, value: Callable[[int], int]) -> Total:
        """The sum of `value` over all programs."""
        if sample.complete:
            exact = sum(value(number) for number in range(self.count))
            return Total(exact, exact, exact)
        mean = low = high = 0.0
        for count, spread, neighbours in sample.strata:
            values = [value(number) for number in spread]
            mean += count * sum(values) / len(values)
            values += [value(number) for number in neighbours]
            low += count * min(values)
            high += count * max(values)
        return Total(round(mean), round(low), round(high))

    def position(self, number: int) -> tuple[int, int, int]:
        """Program ids (x, y, z) of the program with this number."""
        rest, x = divmod(number, self.grid[0])
        z, y = divmod(rest, self.grid[1])
        return x, y, z

    def _strata(self, interior: int, neighbours: set[int]) -> tuple[Stratum, ...]:
        """One stratum for each set of axes along which programs are last: masks differ at the ends of axes."""
        strata = []
        long = [axis for axis in range(3) if self.grid[axis] > 1]
        for choice in range(1 << len(long)):
            last = {axis for bit, axis in enumerate(long) if choice >> bit & 1}
            extent = [1 if axis in last or axis not in long else self.grid[axis] - 1 for axis in range(3)]
            count = extent[0] * extent[1] * extent[2]
            wanted = interior if not last else max(interior // 8, 1)
            picks = _evenly(count, min(wanted, count))
            spread = tuple(self._number(pick, extent, last) for pick in picks)
            near = (number for number in neighbours.difference(spread) if self._last_axes(number) == last)
            strata.append(Stratum(count, spread, tuple(sorted(near))))
        return tuple(strata)

    def _last_axes(self, number: int) -> set[int]:
        """The axes, longer than 1, along which the program is the last."""
        places = self.position(number)
        return {axis for axis in range(3) if self.grid[axis] > 1 and places[axis] == self.grid[axis] - 1}

    def _number(self, pick: int, extent: list[int], last: set[int]) -> int:
        places = []
        for axis in range(3):
            pick, at = divmod(pick, extent[axis])
            places.append(self.grid[axis] - 1 if axis in last else at)
        return places[0] + self.grid[0] * (places[1] + self.grid[1] * places[2])


def _evenly(count: int, wanted: int) -> list[int]:
    """Choose `wanted` of `count` places: the first, and one in each equal share, at irregular distances.

    A fixed distance could hit the same tile of every row in a grid of rows and tiles.
    """
    share = count / wanted
    return sorted({min(int((at + at * GOLDEN % 1) * share), count - 1) for at in range(wanted)})
