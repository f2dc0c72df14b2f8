"""The pattern of an output's wrong elements: where they are, one of them with its neighbours, and early rounding."""

from __future__ import annotations

import math

import torch

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


def describe_pattern(
    got: torch.Tensor,
    expected: torch.Tensor,
    wrong: torch.Tensor,
    *,
    first: tuple[int, ...],
    dtype: torch.dtype,
) -> tuple[str, ...]:
    """Return one or two short sentences about the wrong elements; `got` and `expected` are float64 or int64.

    `wrong` marks them, and `first` is the index of the first one. `dtype` is the output's.
    """
    step = max(1, wrong.numel() // _SAMPLED)
    got_sample, expected_sample, wrong_sample = (
        values.flatten()[::step] for values in (got, expected, wrong)
    )
    rounding = early_rounding(got_sample, expected_sample, wrong_sample, dtype)
    near = neighbours(got, expected, first)
    return tuple(filter(None, (rounding or places(wrong), near)))


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
        "an intermediate value is rounded too early"
    )


def places(wrong: torch.Tensor) -> str:
    """Return where the wrong elements are: in words about rows and columns, the last axis being the columns."""
    if bool(wrong.all()):
        return "every element is wrong"
    if wrong.dim() == 0:
        return ""
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


def _span(marks: torch.Tensor, unit: str) -> str:
    """Return which rows or columns are marked; empty if all are."""
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
        return f"every {step}{_ORDINALS.get(step, 'th')} {unit} of {size}, from {first} to {last}"
    return f"{count} of {size} {unit}s, the first at {first}, the last at {last}"


def neighbours(got: torch.Tensor, expected: torch.Tensor, first: tuple[int, ...]) -> str:
    """Return the element at `first` with its neighbours on the last axis; empty if that axis has one element."""
    if not first or got.shape[-1] == 1:
        return ""
    *row, column = first
    begin, end = max(0, column - _AROUND), min(got.shape[-1], column + _AROUND + 1)
    index = ", ".join([*map(str, row), f"{begin}..{end - 1}"])
    shown = [_short(values[tuple(row)][begin:end]) for values in (expected, got)]
    return f"at [{index}] expected {shown[0]}, got {shown[1]}"


def _short(values: torch.Tensor) -> str:
    numbers = values.tolist()
    return " ".join(str(number) if isinstance(number, int) else f"{number:.4g}" for number in numbers)
