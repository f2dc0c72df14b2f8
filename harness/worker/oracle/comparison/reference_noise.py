"""How far the rounding inside a reference moves its outputs: the reference runs again on inputs that are moved up and down.

The sum of both changes is free of the response to the inputs themselves: to first order, the changes cancel. The rest is the
rounding of three calls. It is independent if the inputs move by a unit in the last place of the coarsest format inside. So a
reference that does not round has no noise, and a format that is coarser than the reference's does no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from harness.worker.kit.arena import Value
from suites.task import Tolerance

PAIRS = 5
"""Pairs of moved calls."""
FACTOR = 3.0
"""A right output may differ by the tolerance and so many times the noise."""
MOST, MOST_RELATIVE = 64.0, 0.064
"""Bounds of an element's noise by its own changes: in tolerances, and relative to the value. A step of an 8-bit quantization has
about 40 tolerances of 1e-3."""
MOST_IN_ROW = 4.0
"""The same by the changes of its row."""
QUANTIZED_REACH = 5.0
"""Limits of a quantization above which an error is wrong whatever the widths cost."""
_THREE_ROUNDINGS = 6.0**0.5
"""Standard deviation of `up + down - 2 * base`, in standard deviations of one call."""

Outputs = Sequence[torch.Tensor]


def measure_noise(
    call: Callable[[Mapping[str, Value]], Outputs],
    inputs: Mapping[str, Value],
    truth: Outputs,
    *,
    casts: Callable[[], Sequence[str]],
    generator: torch.Generator,
    has_oracle: bool,
) -> tuple[torch.Tensor | None, ...]:
    """Return the changes of each output. Of a float, `[2, PAIRS, *shape]`: by rounding, and by the moves. Of an 8-bit integer,
    `[PAIRS, *shape]`: whether it changed at all.

    `call` makes the call of the reference, and `casts` names the 16-bit floats to which that cast wider ones. A cast to 8 bits is
    a quantization, which candidates have to do as well. `None` for other outputs; for floats if an oracle gives the
    truth, as it does not round; and for all outputs if the reference does not repeat its own.
    """
    wanted = [_is_quantized(right) or (_is_float(right) and not has_oracle) for right in truth]
    none = (None,) * len(truth)
    if not any(wanted):
        return none
    base = call(inputs)
    if not _are_equal(call(inputs), base) or not _are_alike(base, truth):
        return none
    if not has_oracle and not _are_equal(base, truth):
        return none
    names = casts()
    coarse = torch.bfloat16 if "bfloat16" in names else torch.float16 if names else None
    floats = {
        name: value for name, value in inputs.items() if isinstance(value, torch.Tensor) and _is_float(value)
    }
    wide = {name: value.float() for name, value in floats.items() if value.itemsize < torch.float32.itemsize}
    if wide and _are_equal(call({**inputs, **wide}), base):
        floats |= wide  # the reference computes in float32: finer moves show its rounding
    pairs = []
    for _ in range(PAIRS):
        moves = {name: _moves(value, coarse, generator) for name, value in floats.items()}
        pair = []
        for sign in (1.0, -1.0):
            moved = {
                name: (value.double() + sign * moves[name]).to(value.dtype) for name, value in floats.items()
            }
            outputs = call({**inputs, **moved})
            if not _are_alike(outputs, truth):
                return none
            pair.append(outputs)
        pairs.append(pair)
    return tuple(
        _changes(base[number], truth[number], [(up[number], down[number]) for up, down in pairs])
        if wanted[number]
        else None
        for number in range(len(truth))
    )


def quantize_outputs(
    call: Callable[[Mapping[str, Value]], Outputs],
    inputs: Mapping[str, Value],
    truth: Outputs,
    *,
    widths: Mapping[str, int],
    generator: torch.Generator,
) -> tuple[torch.Tensor | None, ...]:
    """Return each output with quantized inputs, `[2 * PAIRS, *shape]`; `None` if the call fails.

    Symmetric, with one scale for each index of the first axis. `widths` are the bits of `weight` and of every other input, the
    `activation`; inputs without width and with one axis stay as they are. Of the draws, the first rounds to the nearest level.
    The others shift the levels at random: the errors of a small output depend on chance.
    """
    draws = []
    for draw in range(2 * PAIRS):
        quantized = {
            name: _quantized(value, bits, generator, shifts=draw > 0)
            for name, value in inputs.items()
            if (bits := widths.get("weight" if name == "weight" else "activation", 0))
            and isinstance(value, torch.Tensor)
            and _is_float(value)
            and value.dim() > 1
        }
        outputs = call({**inputs, **quantized})
        if not _are_alike(outputs, truth):
            return (None,) * len(truth)
        draws.append(outputs)
    return tuple(torch.stack(outputs) for outputs in zip(*draws, strict=True))


def _quantized(value: torch.Tensor, bits: int, generator: torch.Generator, *, shifts: bool) -> torch.Tensor:
    """Return a tensor rounded to this number of bits, with one scale for each entry of its first dimension.

    `shifts`: the grid of each value is shifted at random by up to half a step.
    """
    wide, levels = value.double(), 2 ** (bits - 1) - 1
    step = wide.abs().amax(dim=tuple(range(1, wide.dim())), keepdim=True) / levels
    step = torch.where(step == 0, 1.0, step)
    shift = torch.rand(value.shape, generator=generator, dtype=torch.float64, device=value.device) - 0.5
    shift = shift * shifts
    return (((wide / step + shift).round() - shift) * step).to(value.dtype)


def reach(tolerance: Tolerance) -> float:
    """Return the tolerances above which an error is wrong with any noise."""
    return 1.0 + FACTOR * _most(tolerance)


def _most(tolerance: Tolerance) -> float:
    return min(MOST, MOST_RELATIVE / tolerance.rtol) if tolerance.rtol else MOST


def noise_of(changes: torch.Tensor, bound: torch.Tensor, tolerance: Tolerance) -> torch.Tensor:
    """Return the noise of each element of a float output, the largest of three estimates: a few calls may miss an element.

    The estimates: its own largest change by rounding; the root mean square of these changes in its row, each in units of its own
    `bound`, so that large elements do not excuse small ones; and its own change by the moves, times the ratio of both changes in
    the whole output. In row and ratio a change counts up to `MOST_IN_ROW` times `bound`.
    """
    bound = bound.nan_to_num(nan=0.0).to(changes.dtype)
    rounding, response = changes
    kept, kept_response = (torch.minimum(change, MOST_IN_ROW * bound) for change in changes)
    units = bound.clamp_min(torch.finfo(bound.dtype).tiny)
    mean = (kept / units).square().mean(dim=0)
    row = (mean.mean(dim=-1, keepdim=True) if mean.dim() else mean).sqrt() * bound
    ratio = (kept / units).norm() / (kept_response / units).norm().clamp_min(1e-30)
    own = torch.maximum(rounding.amax(dim=0), ratio.clamp(max=1) * response.square().mean(dim=0).sqrt())
    return torch.maximum(torch.minimum(own, _most(tolerance) * bound), row)


def _changes(
    base: torch.Tensor, truth: torch.Tensor, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> torch.Tensor:
    """Return how the outputs change when the inputs move up and down (`pairs`), against the outputs without moves (`base`).

    For floats: the part that rounding explains, and the part that follows the inputs. For quantized outputs: the elements that
    change at all, or differ from the truth.
    """
    if _is_quantized(base):
        changed = torch.stack([(up != base) | (down != base) for up, down in pairs])
        return changed | (base != truth) | _in_open_class(base, changed.any(dim=0))
    wide = base.double()
    rounding = [((up.double() + down - 2 * wide).abs() / _THREE_ROUNDINGS).float() for up, down in pairs]
    response = [((up.double() - down).abs() / 2).float() for up, down in pairs]
    return torch.stack([torch.stack(rounding), torch.stack(response)]).nan_to_num(nan=0.0, posinf=0.0)


def _in_open_class(base: torch.Tensor, changed: torch.Tensor) -> torch.Tensor:
    """Return the elements with a value of which most elements changed: a row's largest is 127 or 126.99, whatever the moves."""
    values = base.flatten().long() + 128
    counts = torch.bincount(values, minlength=384)
    changes = torch.bincount(values[changed.flatten()], minlength=384)
    return (2 * changes > counts)[values].view(base.shape)


def _moves(value: torch.Tensor, coarse: torch.dtype | None, generator: torch.Generator) -> torch.Tensor:
    """Return moves of about one unit in the last place of the coarser dtype; 0 stays 0, so that padding stays padding."""
    wide = value.double()
    eps = torch.finfo(value.dtype).eps
    is_coarser = coarse is not None and torch.finfo(coarse).eps > eps
    unit = torch.ldexp(torch.ones_like(wide), torch.frexp(wide.abs())[1] - 1)
    unit = torch.where(wide.isfinite() & (wide != 0), unit, 0.0)
    drawn = torch.rand(value.shape, generator=generator, dtype=torch.float64, device=value.device) * 2 - 1
    if coarse is not None and is_coarser:
        # Never close to 0: a value that stays where it is rounds as before.
        return unit * torch.finfo(coarse).eps * (drawn + drawn.sign()) / 2
    # Several sizes: two values with equal digits, such as an element and its row's largest, rarely move alike in all pairs. In
    # float32 enough units that a quotient rounds as if at random.
    most = 64 if value.itemsize >= torch.float32.itemsize else 2
    return unit * eps * drawn.sign() * (drawn.abs() * most).ceil()


def _is_float(value: torch.Tensor) -> bool:
    return value.is_floating_point() and value.itemsize > 1


def _is_quantized(value: torch.Tensor) -> bool:
    """True for the levels of a quantization: integers of 8 bits."""
    return value.dtype in (torch.int8, torch.uint8)


def _are_alike(outputs: Outputs, truth: Outputs) -> bool:
    return [output.shape for output in outputs] == [right.shape for right in truth]


def _are_equal(outputs: Outputs, truth: Outputs) -> bool:
    """True if all outputs are the same in dtype, shape and values; two NaN count as equal."""
    return _are_alike(outputs, truth) and all(
        output.dtype == right.dtype
        and bool(((output == right) | ((output != output) & (right != right))).all())
        for output, right in zip(outputs, truth, strict=True)
    )
