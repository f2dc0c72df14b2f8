"""Puts outliers, special values, extremes and degenerate rows into drawn inputs, in place."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import torch

from harness.cases.judged_case import RowKind
from harness.worker.kit.arena import Value

PROBABILITY = 0.001
FACTOR = 50
TAIL = 64
"""One outlier lies within this many elements of the end of the last row, so in the last tile."""
LARGE = 2.0**30
"""Larger than any clamp hides, while fourth powers still fit into float32."""
SHARE = 8
"""A narrow dtype uses its largest finite value divided by this, so that sums of a few values fit."""
LEAST_BITS_OF_MASKS = 16
"""Narrower floats get no mask of -Inf: of the 8-bit formats only `float8_e5m2` has infinities."""
RUN = 16
"""Elements that count as one row of a vector."""
EQUAL = 2.0**-6
"""Value of a row of equal values. Sums of a power of two are exact, so that rounding cannot create a variance."""
OUTWEIGHING = 2.0**13
"""Magnitude of the single value that outweighs the rest of its row."""
DISTANCE = 150.0
"""Mean of a row far below or above zero: beyond 104, where exp vanishes in float32, and beyond 89, where it overflows."""
SPREAD, WIDEST = 4.0, 8.0
"""Standard deviation of such a row, and the most deviations from its mean: all values lie beyond 110. With a smaller
deviation, no float32 mean is precise enough this far from zero."""
MEASURED_DISTANCE, MEASURED_SPREAD = 300.0, 1.0
"""Mean and deviation of such a row of float32 if the errors of careful arithmetic are measured: the variance as a difference of
E[x^2] and mean^2 is then off by some 1 %, a careful one by 0.01 %."""
TINY, TINY_NARROW = 2.0**-20, 2.0**-8
"""Factor of a tiny row; the second for dtypes of 16 bits and fewer, which would lose digits."""
SPECIAL = (math.nan, math.inf, -math.inf)


def inject_outliers(inputs: Mapping[str, Value], names: Iterable[str], generator: torch.Generator) -> None:
    """Multiply 0.1 % of the elements of each named input by 50, in place; never fewer than one of them.

    One of them lies in the last 64 elements of the last row. Each element is multiplied at most once. Empty tensors stay
    unchanged; a name that is no tensor raises `TypeError`.
    """
    for name in names:
        tensor = inputs[name]
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} is no tensor, so it cannot hold outliers")
        if tensor.numel():
            flat = tensor.view(-1)
            flat[_places(flat.numel(), tensor.shape[-1] if tensor.dim() else 1, generator)] *= FACTOR


def inject_special(inputs: Mapping[str, Value], names: Iterable[str], generator: torch.Generator) -> None:
    """Put a NaN and both infinities into each named floating-point input, in place, each in its own row if there are three.

    The first input with several dimensions also gets one row of -Inf, if it has a fourth row. A small input gets some of
    the values. Eight-bit floats without infinities get their NaN, or nothing.
    """
    whole = False
    for tensor in _floats(inputs, names):
        *outer, columns = tensor.shape or (1,)
        rows = torch.randperm(math.prod(outer), generator=generator)
        places = torch.randperm(columns, generator=generator)
        room = max(len(rows), columns)
        values = list(SPECIAL)
        if room < len(values):
            values = [values[index] for index in torch.randperm(len(values), generator=generator)[:room]]
        for at, value in enumerate(values):
            row = _index_of(rows[at % len(rows)], outer)
            tensor[(*row, int(places[at % columns]))] = value
        if outer and len(rows) > len(SPECIAL) and not whole:
            tensor[_index_of(rows[len(SPECIAL)], outer)] = -math.inf
            whole = True


def _floats(inputs: Mapping[str, Value], names: Iterable[str]) -> Iterator[torch.Tensor]:
    """Yield the named inputs that are floating-point tensors with elements."""
    for name in names:
        tensor = inputs[name]
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.numel():
            yield tensor


def _index_of(row: torch.Tensor, outer: Sequence[int]) -> tuple[int, ...]:
    """Return the index of a row, which is counted in C order over the dimensions `outer`.

    `torch.unravel_index` imports sympy, which takes each judge a second or more.
    """
    places = np.unravel_index(int(row), tuple(outer)) if outer else ()
    return tuple(int(place) for place in places)


def inject_mask(inputs: Mapping[str, Value], names: Iterable[str]) -> None:
    """Mask the left half of the last row of one input: set it to -Inf, in place.

    A kernel that reads a row from left to right in blocks then has a first block of nothing but -Inf, where a running maximum
    minus itself is NaN. The other rows stay ordinary, so that most of the output still shows other errors.

    The input is the first named floating-point tensor with several dimensions; no other input is tried. It stays unchanged if it
    has one row only, or 8-bit floats.
    """
    for tensor in _floats(inputs, names):
        if tensor.dim() > 1:
            rows = tensor.view(-1, tensor.shape[-1])
            if len(rows) > 1 and torch.finfo(tensor.dtype).bits >= LEAST_BITS_OF_MASKS:
                rows[-1, : tensor.shape[-1] // 2] = -math.inf
            return


def inject_extremes(
    inputs: Mapping[str, Value], names: Iterable[str], generator: torch.Generator, *, moved: bool
) -> None:
    """Put large finite values of both signs and a zero into each named floating-point input, in place, in different rows.

    If the task only moves values (`moved`), these are the largest and smallest values of the dtype and a negative zero.
    Inputs of one shape get them in the same places, so that they do not cancel; each zero has its own place.
    """
    zeros: Counter[tuple[int, ...]] = Counter()
    drawn: dict[tuple[int, ...], tuple[torch.Tensor, torch.Tensor]] = {}
    for tensor in _floats(inputs, names):
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
            row = _index_of(rows[at % len(rows)], outer)
            tensor[(*row, int(places[at % columns]))] = value
        alone = len(values) + zeros[tensor.shape]
        if not moved and alone < max(len(rows), columns):
            row = _index_of(rows[alone % len(rows)], outer)
            tensor[(*row, int(places[alone % columns]))] = 0.0
            zeros[tensor.shape] += 1


def inject_degenerate(
    inputs: Mapping[str, Value],
    names: Iterable[str],
    generator: torch.Generator,
    kinds: Iterable[RowKind] = tuple(RowKind),
    *,
    is_measured: bool = False,
) -> None:
    """Replace one row of each named floating-point input by each kind of degenerate row, in place.

    The rows are drawn per shape: inputs of one shape have the same kind in the same row. A vector's rows are its runs of 16
    elements; a vector with a length that 16 does not divide stays unchanged. `is_measured`: the tolerance
    follows the errors of careful arithmetic.
    """
    drawn: dict[torch.Size, torch.Tensor] = {}
    for tensor in _floats(inputs, names):
        columns = tensor.shape[-1] if tensor.dim() > 1 else RUN
        if tensor.numel() % columns:
            continue
        rows = tensor.reshape(-1, columns)
        if tensor.shape not in drawn:
            drawn[tensor.shape] = torch.randperm(len(rows), generator=generator)
        facts = torch.finfo(tensor.dtype)
        largest = facts.max / SHARE
        for kind, row in zip(kinds, drawn[tensor.shape].tolist(), strict=False):
            place = int(torch.randint(columns, (1,), generator=generator))
            tiny = TINY if facts.bits > 16 else TINY_NARROW
            far = (
                (MEASURED_DISTANCE, MEASURED_SPREAD)
                if is_measured and facts.bits > 16
                else (DISTANCE, SPREAD)
            )
            made = _degenerate(kind, rows[row].float(), place, tiny=tiny, far=far)
            rows[row] = made.clamp(-largest, largest).to(tensor.dtype)
        if rows.data_ptr() != tensor.data_ptr():  # the rows of another layout are a copy
            tensor.copy_(rows.view(tensor.shape))


def _degenerate(
    kind: RowKind, row: torch.Tensor, place: int, *, tiny: float, far: tuple[float, float]
) -> torch.Tensor:
    """Return a row of this kind, made from a plain row; `place` is one of its columns.

    `far`: mean and deviation of a row far from zero.
    """
    distance, spread = far
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
            return _spread_out(row) * spread - distance
        case RowKind.FAR_ABOVE:
            return _spread_out(row) * spread + distance
        case RowKind.HALF:
            return torch.where((places * 2 < len(row)) == (place % 2 == 0), 0.0, row)


def _spread_out(row: torch.Tensor) -> torch.Tensor:
    """Return the row with mean 0 and deviation 1; alternating signs if all its values are equal."""
    deviation = row - row.mean()
    spread = deviation.square().mean().sqrt()
    turns = 1.0 - 2.0 * (torch.arange(len(row), device=row.device) % 2)
    return torch.where(spread > 0, deviation / spread, turns).clamp(-WIDEST, WIDEST)


def _places(elements: int, columns: int, generator: torch.Generator) -> torch.Tensor:
    """Return distinct flat indices for outliers, one of them at the end of the last row."""
    tail = int(torch.randint(min(TAIL, columns), (1,), generator=generator))
    count = max(1, round(elements * PROBABILITY))
    drawn = torch.randint(elements, (count - 1,), generator=generator)
    places: torch.Tensor = torch.unique(torch.cat([drawn, torch.tensor([elements - 1 - tail])]))
    return places
