"""The pattern of an output's wrong elements: where they are, one of them with its neighbours, and early rounding."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import torch

from harness.worker.kit.arena import Value

_SAMPLED = 1 << 20
"""Elements of a large output that are looked at for early rounding."""
_ORDINALS = {2: "nd", 3: "rd"}
_AROUND = 2
"""Neighbours on each side of the element that is shown."""
_ROUNDINGS = ((10, "float16"), (7, "bfloat16"))
"""Stored significand bits of dtypes to which kernels round too early, and their names."""
_ROUNDED_ULPS = (0.06, 3.0)
"""Median error of one or a few roundings, in units in the last place; a single rounding gives about 0.25."""
_MOST_ULPS = 16.0
"""For 95 of 100 wrong elements; sums that cancel exceed it."""
_LEAST_EITHER_WAY = 0.05
"""Share of the wrong elements that are too large, and of those that are too small. Rounding to nearest gives about half
each; a wrong factor of a row, such as a sum with one term too many, gives one of them alone."""
_LEAST_ALIKE = 8
"""Fewer wrong elements have almost any property in common by chance."""
_MOST_INPUTS, _MOST_INDICES = 4, 6
_MOST_DIGITS = 17


def common_property(
    got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor, dtype: torch.dtype
) -> str:
    """Return what the wrong elements have in common: places and values; empty if nothing is known.

    `got` and `expected` are float64 or int64, and `wrong` marks the elements. `dtype` is the output's.
    """
    step = max(1, wrong.numel() // _SAMPLED)
    got_sample, expected_sample, wrong_sample = (
        values.flatten()[::step] for values in (got, expected, wrong)
    )
    rounding = early_rounding(got_sample, expected_sample, wrong_sample, dtype)
    alike = "" if rounding else relation(got_sample[wrong_sample], expected_sample[wrong_sample])
    return "; ".join(filter(None, (rounding or places(wrong), alike)))


def relation(got: torch.Tensor, expected: torch.Tensor) -> str:
    """Return what the values of the wrong elements have in common, as a hint at the cause; empty if nothing is known."""
    if got.numel() < _LEAST_ALIKE or not bool(got.isfinite().all()) or not bool(expected.isfinite().all()):
        return ""
    if bool((got == got[0]).all()):
        return f"each is {got[0].item():.4g}"
    if not got.is_floating_point():
        return ""
    if bool((expected != 0).all()):
        ratios = got / expected
        factor = float(ratios.median())
        if abs(factor - 1) > 1e-2 and float((ratios - factor).abs().max()) <= 1e-3 * abs(factor):
            return f"each is {factor:.4g} times the expected value"
    if bool((got == got.round()).all()) and float((expected != expected.round()).double().mean()) > 0.5:
        return "each is a whole number, unlike the expected values: a cast to an integer?"
    return ""


def early_rounding(got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor, dtype: torch.dtype) -> str:
    """Return a sentence if the errors look like one rounding to a narrow dtype, all over the output; else nothing.

    The tensors are flat.
    """
    if not bool(wrong.any()) or not dtype.is_floating_point or dtype.itemsize == 1:
        return ""
    usable = got.isfinite() & expected.isfinite() & (expected != 0)
    if not bool((usable | ~wrong).all()):
        return ""
    error, truth = (got - expected).abs()[usable], expected[usable].abs()
    differing = error > 0
    away = float((got[usable].abs() > truth)[wrong[usable]].double().mean())
    if not _LEAST_EITHER_WAY <= away <= 1 - _LEAST_EITHER_WAY:
        return ""
    cosine = float((got[usable] * expected[usable]).sum() / (got[usable].norm() * expected[usable].norm()))
    if error.numel() < 64 or float(differing.double().mean()) < 0.5 or cosine < 0.999:
        return ""
    own_bits = -round(math.log2(torch.finfo(dtype).eps))
    fits: dict[str, float] = {}
    for bits, name in _ROUNDINGS:
        if bits > own_bits:
            continue
        ulps = error / torch.exp2(truth.log2().floor() - bits)
        median = float(ulps[differing].median())
        worst = float(ulps[wrong[usable]].quantile(0.95))
        if _ROUNDED_ULPS[0] <= median <= _ROUNDED_ULPS[1] and worst <= _MOST_ULPS:
            fits[name] = abs(math.log2(median / 0.3))
    if not fits:
        return ""
    name = min(fits, key=lambda name: fits[name])
    if name == "float16" and dtype is torch.float32:
        name = "float16 or TF32"
    return (
        f"the errors are everywhere and about the size of one rounding to {name}: "
        "is an intermediate value rounded too early?"
    )


def places(wrong: torch.Tensor) -> str:
    """Return where the wrong elements are, in rows and columns or in slices of each axis; empty if all are wrong."""
    if bool(wrong.all()):
        return ""
    if sum(size > 1 for size in wrong.shape) > 2:
        return _places_in_slices(wrong)
    table = wrong.reshape(-1, wrong.shape[-1])
    rows, columns = table.any(dim=1), table.any(dim=0)
    one_row = table.shape[0] == 1
    unit = "element" if one_row else "column"
    where_columns = _span(columns, unit)
    if one_row:
        return f"wrong elements: {where_columns}" if where_columns else ""
    where_rows = _span(rows, "row")
    if bool(table[rows].all()):
        return f"wrong elements: {where_rows}, from end to end" if where_rows else ""
    in_rows = where_rows or "every row"
    if where_columns:
        return f"wrong elements: {where_columns}, in {in_rows}"
    return f"wrong elements: scattered columns, in {in_rows}"


def _places_in_slices(wrong: torch.Tensor) -> str:
    """Return which indices of which axes have wrong elements, and whether all elements with these indices are wrong."""
    marks = [wrong.movedim(axis, 0).flatten(1).any(dim=1) for axis in range(wrong.dim())]
    shape = f"in shape {list(wrong.shape)}"
    slices = [words for axis, marked in enumerate(marks) if (words := _slices(axis, marked))]
    count, box = int(wrong.sum()), math.prod(int(marked.sum()) for marked in marks)
    if count == 1:
        return f"one element is wrong {shape}"
    flat = wrong.flatten().nonzero().flatten()
    if int(flat[-1] - flat[0]) + 1 == count != box:  # such as the tail of a kernel that ignores the axes
        return f"wrong elements: {_span(wrong.flatten(), 'element')}, counted over all axes {shape}"
    if not slices:
        return f"wrong elements: scattered over every slice of every axis {shape}"
    full = "; every element there is wrong" if box == count else ""
    return f"all wrong elements have {', '.join(slices)} {shape}{full}"


def _slices(axis: int, marks: torch.Tensor) -> str:
    """Return which indices of an axis are marked; empty if all are."""
    at = marks.nonzero().flatten().tolist()
    if len(at) == marks.numel():
        return ""
    if len(at) == 1:
        return f"index {at[0]} of axis {axis}"
    shown = ", ".join(map(str, at if len(at) <= _MOST_INDICES else [*at[: _MOST_INDICES - 1], "..."]))
    return f"{_run(at) or f'{len(at)} indices ({shown})'} of axis {axis}"


def _run(at: Sequence[int]) -> str:
    """Return several places that have one distance in words; empty if the distances differ."""
    first, last = at[0], at[-1]
    step = at[1] - first
    if at != list(range(first, last + 1, step)):
        return ""
    if step == 1:
        return f"indices {first}..{last}"
    return f"every {_ordinal(step)} index from {first} to {last}"


def _ordinal(number: int) -> str:
    return f"{number}{_ORDINALS.get(number, 'th')}"


def _span(marks: torch.Tensor, unit: str) -> str:
    """Say which rows or columns are marked, such as `the last 3 of 64 rows`; empty if all are. At least one is marked."""
    size = marks.numel()
    at = marks.nonzero().flatten().tolist()
    count, first, last = len(at), at[0], at[-1]
    if count == size:
        return ""
    if count == 1:
        kind = "the last" if last == size - 1 else "the first" if first == 0 else "only"
        return f"{kind} {unit} ({first} of 0..{size - 1})"
    if last - first + 1 == count:
        side = "the last " if last == size - 1 else "the first " if first == 0 else ""
        return f"{side}{count} of {size} {unit}s ({first}..{last})"
    step = math.gcd(*(place - first for place in at))
    if step > 1 and count > 2 and count == (last - first) // step + 1:
        return f"every {_ordinal(step)} {unit} of {size}, from {first} to {last}"
    return f"{count} of {size} {unit}s, the first at {first}, the last at {last}"


def neighbours(got: torch.Tensor, expected: torch.Tensor, shown: tuple[int, ...]) -> str:
    """Return the element at `shown` with its neighbours on the last axis; empty if that axis has one element."""
    if not shown or got.shape[-1] == 1:
        return ""
    *row, column = shown
    begin, end = max(0, column - _AROUND), min(got.shape[-1], column + _AROUND + 1)
    index = ", ".join([*map(str, row), f"{begin}..{end - 1}"])
    digits = digits_of(expected[shown].item(), got[shown].item(), least=4)
    expected_text, got_text = (
        " ".join(in_digits(value, digits) for value in values[tuple(row)][begin:end].tolist())
        for values in (expected, got)
    )
    return f"at [{index}] expected {expected_text}, got {got_text}"


def in_digits(value: float, digits: int) -> str:
    """Return a value in so many digits; an integer in full."""
    return str(value) if isinstance(value, int) else f"{value:.{digits}g}"


def digits_of(expected: float, got: float, least: int) -> int:
    """Return how many digits make two values differ."""
    tried = range(least, _MOST_DIGITS)
    return next((n for n in tried if in_digits(expected, n) != in_digits(got, n)), _MOST_DIGITS)


def inputs_at(shown: Sequence[int], inputs: Mapping[str, Value], shape: torch.Size) -> Iterator[str]:
    """Yield the values at index `shown` of the inputs with the output's shape, if there are any."""
    values = [
        f"{name} = {in_digits(value[tuple(shown)].item(), 4)}"
        for name, value in inputs.items()
        if isinstance(value, torch.Tensor) and value.shape == shape
    ]
    if shown and values:
        yield f"inputs at {list(shown)}: {', '.join(values[:_MOST_INPUTS])}"
