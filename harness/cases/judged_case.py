"""Cases as they are judged: a case of a task's, or one made from it, with what its inputs are. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from suites.task import Case


class RowKind(StrEnum):
    """
    Kinds of degenerate row; `distributions.py` makes them.

    Each shows a wrong kernel that plain rows do not show: no guard for zeros, no maximum, a variance in one pass, a running
    maximum that starts at 0, an exponential that vanishes or overflows.
    """

    ZEROS = "zeros"
    EQUAL = "equal values"
    TINY = "tiny values"
    OUTWEIGHED = "one value outweighs the others"
    FAR_BELOW = "far below zero"
    FAR_ABOVE = "far above zero"
    HALF = "half zeros"


FAR = (RowKind.FAR_BELOW, RowKind.FAR_ABOVE)
"""Not every task has an answer to these kinds: `problem.py` leaves them out where the oracle has none."""


class Layout(StrEnum):
    """How the elements of tensor inputs lie in their storages."""

    DENSE = "dense"
    OFFSET = "offset"
    UNALIGNED = "unaligned"
    TRANSPOSED = "transposed"
    PADDED = "padded rows"
    STEPPED = "every second element"


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One input configuration before the judge."""

    case: Case
    hidden: bool = False
    """Made by the judge; not compiled at `gpu` sizes and not counted as traffic."""
    layout: Layout = Layout.DENSE
    special: bool = False
    """A NaN and both infinities are among the values."""
    extreme: bool = False
    """The largest finite values that the task's arithmetic bears are among them."""
    masked: bool = False
    """Half of a row is -Inf, from its start."""
    degenerate: tuple[RowKind, ...] = ()
    """Kinds of degenerate rows among them."""
    probe: bool = False
    """The inputs are those of `probe_inputs`, and judged by the quantization's probe."""
    twice: bool = False
    """Two inputs of one shape and dtype are the same tensor; it is asked for once, with one draw of values."""
    parameters: bool = False
    """Inputs of floats are parameters of a module, which want gradients."""
    no_gradients: bool = False
    """The call is made where torch keeps no gradients, as those of servers are."""
    scalars: tuple[tuple[str, float], ...] = ()
    """Parameters that are given another value than their default, unless the task gives them one."""

    @property
    def name(self) -> str:
        """What people are told."""
        return self.case.name

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for cases with equal inputs at the same place of the pool."""
        case = self.case
        sizes = (tuple(case.cpu.items()), tuple(case.gpu.items()))
        values = (
            self.layout,
            self.special,
            self.extreme,
            self.masked,
            self.degenerate,
            self.probe,
            self.twice,
        )
        return (case.name, case.dtype, sizes, case.distribution, *values, self.scalars)

    @property
    def sizes(self) -> str:
        """Sizes on `cpu` in words, `rows=29, columns=777`."""
        return ", ".join(f"{axis}={size}" for axis, size in self.case.cpu.items())
