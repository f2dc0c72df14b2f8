"""The case as it is judged: a case of the task, or one made from it, and the kinds of its inputs. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass

from suites.task import Case, TextEnum


class RowKind(TextEnum):
    """Kinds of degenerate row; `distributions.py` makes them.

    They find kernels that plain rows do not: without a guard for zeros, without a maximum, with a variance in one pass, with
    a running maximum that starts at 0, with an exponential that vanishes or overflows.
    """

    ZEROS = "zeros"
    EQUAL = "equal values"
    TINY = "tiny values"
    OUTWEIGHED = "one value outweighs the others"
    FAR_BELOW = "far below zero"
    FAR_ABOVE = "far above zero"
    HALF = "half zeros"


FAR = (RowKind.FAR_BELOW, RowKind.FAR_ABOVE)
"""Kinds that `problem.py` leaves out if the task's oracle has no finite answer for them."""


class Layout(TextEnum):
    """How the elements of tensor inputs lie in their storages."""

    DENSE = "dense"
    OFFSET = "offset"
    UNALIGNED = "unaligned"
    TRANSPOSED = "transposed"
    PADDED = "padded rows"
    STEPPED = "every second element"


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """One case of an evaluation."""

    case: Case
    hidden: bool = False
    """Made by the judge. It is not compiled at `gpu` sizes and has no traffic."""
    layout: Layout = Layout.DENSE
    special: bool = False
    """The values include a NaN and both infinities."""
    extreme: bool = False
    """The values include the largest finite ones for which the task's answer is finite."""
    masked: bool = False
    """The first half of a row is -Inf."""
    degenerate: tuple[RowKind, ...] = ()
    probe: bool = False
    """The inputs are the task's `probe_inputs`, and the quantization's probe judges the outputs."""
    twice: bool = False
    """Two inputs of the same shape and dtype are one tensor, with one draw of values."""
    parameters: bool = False
    """Floating-point inputs are `torch.nn.Parameter`s that require gradients."""
    no_gradients: bool = False
    """The call runs under `torch.no_grad`, as in a server."""
    scalars: tuple[tuple[str, float], ...] = ()
    """Values for parameters that have a default, unless the task's inputs set them."""

    @property
    def name(self) -> str:
        """The name that reports show."""
        return self.case.name

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key of a case's inputs: equal for two cases only if the judge draws the same inputs for both."""
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
        """Sizes on `cpu` that the name does not say: `rows=29, columns=777`; empty for an open case, known by its name."""
        if not self.hidden and not self.case.exam:
            return ""
        texts = [f"{axis}={size}" for axis, size in self.case.cpu.items()]
        return ", ".join(text for text in texts if text not in self.case.name.split())
