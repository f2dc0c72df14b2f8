"""Outliers, the second distribution of values that cases are drawn from, and values that are no number."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import torch

from harness.cases.judged_case import RowKind

PROBABILITY = 0.001
FACTOR = 50
TAIL = 64
"""One outlier lies among the last elements of the last row, so in the last tile."""
LARGE = 2.0**30
"""Beyond what a clamp may hide in, while fourth powers still fit into float32."""
SHARE = 8
"""Of the largest finite value of a narrower dtype, so that sums of a few still fit."""
EIGHT = 8
"""Bits of floats that have no infinities."""
RUN = 16
EQUAL = 2.0**-6
"""Value of a row whose values are all equal. A power of two, whose sums are exact: no rounding makes a variance of it."""
OUTWEIGHING = 2.0**13
"""Size of the one value that outweighs the others of its row."""
DISTANCE = 150.0
"""How far from zero a row lies that is far below or above it: beyond 104, where exp vanishes in float32, and beyond 89, where it overflows."""
SPREAD, WIDEST = 4.0, 8.0
"""Spread of such a row, and how many times that a value is from the row's mean at most: all values lie beyond 110."""
TINY, TINY_NARROW = 2.0**-20, 2.0**-8
"""Factor of a tiny row; the second is for 16 bits and fewer, which are to keep their digits."""
SPECIAL = (math.nan, math.inf, -math.inf)


def inject_outliers(
    inputs: Mapping[str, torch.Tensor | int | float], names: Iterable[str], generator: torch.Generator
) -> None:
    """Multiply 0.1 % of the elements of each named input by 50, in place; never fewer than one of them.

    One of them always lies in the last 64 elements of the last row of the last dimension. Each element is multiplied at most
    once. An empty tensor stays as it is; a name that is no tensor is a `TypeError`.
    """
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is no tensor, so it cannot hold outliers")
        if tensor.numel():
            flat = tensor.view(-1)
            flat[_places(flat.numel(), tensor.shape[-1] if tensor.dim() else 1, generator)] *= FACTOR


def inject_special(
    inputs: Mapping[str, torch.Tensor | int | float], names: Iterable[str], generator: torch.Generator
) -> None:
    """Put a NaN and both infinities into each named input that holds floats, in place, in three rows where it has them.

    Of the first of several dimensions a fourth row becomes -Inf throughout, where it has one. An input with fewer elements gets some of
    them. Eight-bit floats without infinities get their NaN, or nothing.
    """
    whole = False
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or not tensor.numel():
            continue
        *outer, columns = tensor.shape or (1,)
        rows = torch.randperm(math.prod(outer), generator=generator)
        places = torch.randperm(columns, generator=generator)
        room = max(len(rows), columns)
        values = list(SPECIAL)
        if room < len(values):
            values = [values[one] for one in torch.randperm(len(values), generator=generator)[:room]]
        for at, value in enumerate(values):
            row = torch.unravel_index(rows[at % len(rows)], outer) if outer else ()
            tensor[(*row, places[at % columns])] = value
        if outer and len(rows) > len(SPECIAL) and not whole:
            tensor[torch.unravel_index(rows[len(SPECIAL)], outer)] = -math.inf
            whole = True


def inject_mask(inputs: Mapping[str, torch.Tensor | int | float], names: Iterable[str]) -> None:
    """Make the first half of the last row -Inf, as what is masked at the left, in the first named input that is a matrix of floats, in place.

    A matrix of one row stays as it is.
    """
    for name in names:
        tensor = inputs[name]
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.dim() > 1:
            rows = tensor.view(-1, tensor.shape[-1])
            if len(rows) > 1 and torch.finfo(tensor.dtype).bits > EIGHT:
                rows[-1, : tensor.shape[-1] // 2] = -math.inf
            return


def inject_extremes(
    inputs: Mapping[str, torch.Tensor | int | float],
    names: Iterable[str],
    generator: torch.Generator,
    *,
    moved: bool,
) -> None:
    """Put a large finite value of each sign and a zero into each named input that holds floats, in place, in rows apart where it has them.

    Where values are only `moved`, they are the largest there are, with the smallest one and a negative zero beside them.
    Inputs of one shape get them in the same places, so that none cancels another, but for the zero: that stands alone.
    """
    zeros: Counter[tuple[int, ...]] = Counter()
    drawn: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or not tensor.numel():
            continue
        facts = torch.finfo(tensor.dtype)
        large = min(LARGE, facts.max / SHARE)
        values = (
            (facts.max, -facts.max, facts.smallest_normal * facts.eps, -0.0) if moved else (large, -large)
        )
        *outer, columns = tensor.shape or (1,)
        if tensor.shape not in drawn:
            drawn[tensor.shape] = (
                torch.randperm(math.prod(outer), generator=generator),
                torch.randperm(columns, generator=generator),
            )
        rows, places = drawn[tensor.shape]
        for at, value in enumerate(values[: max(len(rows), columns)]):
            row = torch.unravel_index(rows[at % len(rows)], outer) if outer else ()
            tensor[(*row, places[at % columns])] = value
        alone = len(values) + zeros[tensor.shape]
        if not moved and alone < max(len(rows), columns):
            row = torch.unravel_index(rows[alone % len(rows)], outer) if outer else ()
            tensor[(*row, places[alone % columns])] = 0.0
            zeros[tensor.shape] += 1


def inject_degenerate(
    inputs: Mapping[str, torch.Tensor | int | float],
    names: Iterable[str],
    generator: torch.Generator,
    kinds: Iterable[RowKind] = tuple(RowKind),
) -> None:
    """
    Make one row of each kind in each named input that holds floats, in place; the other rows stay.

    The rows are drawn for each shape, so that inputs of one shape have the same kind in the same row. The rows of a vector are
    its runs of 16 elements; a vector that 16 does not divide stays as it is.
    """
    drawn: dict[torch.Size, torch.Tensor] = {}
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or not tensor.numel():
            continue
        columns = tensor.shape[-1] if tensor.dim() > 1 else RUN
        if tensor.numel() % columns:
            continue
        rows = tensor.view(-1, columns)
        if tensor.shape not in drawn:
            drawn[tensor.shape] = torch.randperm(len(rows), generator=generator)
        facts = torch.finfo(tensor.dtype)
        largest = facts.max / SHARE
        for kind, row in zip(kinds, drawn[tensor.shape].tolist(), strict=False):
            place = int(torch.randint(columns, (1,), generator=generator))
            made = _degenerate(kind, rows[row].float(), place, tiny=TINY if facts.bits > 16 else TINY_NARROW)
            rows[row] = made.clamp(-largest, largest).to(tensor.dtype)


def _degenerate(kind: RowKind, row: torch.Tensor, place: int, *, tiny: float) -> torch.Tensor:
    """The row of a kind that is made of a plain row; `place` is drawn from its columns."""
    places = torch.arange(len(row), device=row.device)
    match kind:
        case RowKind.ZEROS:
            return torch.zeros_like(row)
        case RowKind.EQUAL:
            return torch.full_like(row, EQUAL).copysign(row[place])
        case RowKind.TINY:
            return row * tiny
        case RowKind.OUTWEIGHED:
            return torch.where(places == place, torch.full_like(row, OUTWEIGHING).copysign(row), row)
        case RowKind.FAR_BELOW:
            return _spread_out(row) - DISTANCE
        case RowKind.FAR_ABOVE:
            return _spread_out(row) + DISTANCE
        case RowKind.HALF:
            return torch.where((places * 2 < len(row)) == (place % 2 == 0), 0.0, row)


def _spread_out(row: torch.Tensor) -> torch.Tensor:
    """
    The row with a mean of 0 and a spread of `SPREAD`, signs in turns where its values are all equal.

    With a smaller spread no float32 mean would be good enough so far from zero.
    """
    deviation = row - row.mean()
    spread = deviation.square().mean().sqrt()
    turns = 1.0 - 2.0 * (torch.arange(len(row), device=row.device) % 2)
    return torch.where(spread > 0, deviation / spread, turns).clamp(-WIDEST, WIDEST) * SPREAD


def _places(elements: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Distinct places of outliers in the flat tensor, one of them in the tail of the last row."""
    tail = int(torch.randint(min(TAIL, columns), (1,), generator=generator))
    count = max(1, round(elements * PROBABILITY))
    others = torch.randint(elements, (count - 1,), generator=generator)
    places: torch.Tensor = torch.unique(torch.cat([others, torch.tensor([elements - 1 - tail])]))
    return places
