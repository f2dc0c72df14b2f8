"""The comparison of a candidate's output with the oracle's; the judge has no other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np
import torch

from harness.wire.results.evaluation import Margin, Mismatch
from harness.worker.kit.arena import Value, dtype_name
from harness.worker.oracle.comparison import bounds
from suites.task import QuantizationTolerance, Tolerance

from .error_pattern import common_property, digits_of, in_digits, inputs_at, neighbours
from .measure import MOST, ErrorMeasure
from .reference_noise import FACTOR, QUANTIZED_REACH, noise_of, reach

EXACT = Tolerance()
SLACK = 1.25
"""Factor on the error of quantized inputs if they alone miss a metric's limit: allows another rounding or granularity."""


@dataclass(frozen=True, slots=True)
class OutputComparison:
    """The result for one output of one case."""

    mismatch: Mismatch | None
    """Where and by how much the output is wrong; `None` if it is right."""
    margins: tuple[Margin, ...]
    """Used share of each tolerance; none if there is no such share: wrong dtype or shape, NaN, Inf, integers."""
    elements: int
    weak: str = ""
    """How far the output is off, if only an allowance of the task or TF32 makes it right."""

    def is_near(self, tolerance: Tolerance, quantization: QuantizationTolerance | None) -> bool:
        """Return whether the errors are so small that the oracle's own rounding, or a quantization, may explain them."""
        if self.margins:
            limit = reach(tolerance) if quantization is None else QUANTIZED_REACH
            return all(margin.used <= limit for margin in self.margins)
        return self.mismatch is not None and self.mismatch.max_abs == 1


class _Subject(NamedTuple):
    """The output under comparison, as reports need it."""

    case: str
    output: str
    inputs: Mapping[str, Value] | None


def compare(
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    case: str,
    output: str,
    dtype: torch.dtype,
    tolerance: Tolerance,
    quantization: QuantizationTolerance | None,
    terms: int = 1,
    tf32: bool = False,
    changes: torch.Tensor | None = None,
    measure: ErrorMeasure | None = None,
    inputs: Mapping[str, Value] | None = None,
) -> OutputComparison:
    """Compare `got` with `expected`, and measure how much of the tolerance it uses.

    `expected` is the oracle's output (float64 or integer); `dtype` is the dtype that `got` must have. `terms` is the length
    of the tolerance's reduction. `tf32` is true if the device rounds to TF32. `changes`: of `reference_noise`, for `expected`;
    with `quantization` the outputs for quantized inputs. `inputs` of the output's shape are shown beside a wrong element,
    and are the unit of a scale if all expected values are 0.

    NaN and infinities must be where the oracle has them. A value beyond the range of `dtype` is expected as infinity; if
    the tolerance reaches across that limit, a finite value is right as well. With `quantization`, its metrics judge the
    finite values instead of `tolerance`.
    """
    subject = _Subject(case, output, inputs)
    if got.dtype != dtype or got.shape != expected.shape:
        return OutputComparison(_unlike(got, expected, dtype, subject), (), 0)
    if not dtype.is_floating_point:
        changes = measure.open[None] if measure is not None else changes
        return _compare_whole(got, expected, subject, changes, steps=tolerance.ulps)
    if measure is not None:
        allowed = bounds.allowed(expected, dtype, tolerance, terms=terms)
        return _compare_measured(got, expected, measure, allowed, subject, least_cosine=tolerance.cosine)
    wide, truth = got.double(), expected.double()
    limit = bounds.overflow(dtype)
    beyond = truth.isfinite() & (truth.abs() >= limit)
    reference = torch.where(beyond, truth.sign() * math.inf, truth)
    finite = wide.isfinite() & reference.isfinite()
    right = (wide.isnan() & truth.isnan()) | (wide == reference)
    metrics: dict[str, float] = {}
    if quantization is None:
        units = inputs.values() if inputs is not None else ()
        bound = bounds.allowed(truth, dtype, tolerance, terms=terms, tf32=tf32, inputs=units)
        if changes is not None:
            bound = bound + FACTOR * noise_of(changes, bound, tolerance)
        error = (wide - truth).abs()
        near = truth.isfinite() & (truth.abs() + bound >= limit)
        right |= wide.isfinite() & truth.isfinite() & (error <= bound)
        right |= near & wide.isinf() & (wide.sign() == truth.sign())
        kind = "exact" if tolerance == EXACT else "elementwise"
        share = torch.where(finite & (error > 0), error / bound, 0.0)
        margins = _elementwise(share, finite, right, Margin(case, output, kind, 0.0))
        used = float(share.max()) if share.numel() else 0.0
    else:
        metrics = quantization_metrics(wide[finite], reference[finite], dtype)
        shares = _shares(metrics, quantization)
        if changes is not None:
            least = [
                _shares(
                    quantization_metrics(quantized.double()[finite], reference[finite], dtype), quantization
                )
                for quantized in changes
            ]
            shares = {
                name: share / max(1.0, SLACK * max(used[name] for used in least))
                for name, share in shares.items()
            }
        used = max(shares.values())
        if used <= 1:
            right |= finite
        margins = tuple(
            Margin(case, output, name, share) for name, share in shares.items() if math.isfinite(share)
        )
    mismatch = _report(got, wide, reference, ~right, subject, used=used, metrics=metrics)
    return OutputComparison(mismatch, margins, got.numel())


def _compare_measured(
    got: torch.Tensor,
    truth: torch.Tensor,
    measure: ErrorMeasure,
    allowed: torch.Tensor,
    subject: _Subject,
    *,
    least_cosine: float,
) -> OutputComparison:
    """Compare errors beyond the allowed ones with the errors of careful arithmetic.

    With `least_cosine`, finite values with such a cosine are right whatever their errors.
    """
    wide, limit = got.double(), bounds.overflow(got.dtype)
    error = wide - truth
    excess = (error.abs() - allowed).clamp(min=0.0).copysign(error)
    beyond = truth.isfinite() & (truth.abs() + MOST * measure.careful_error + allowed >= limit)
    finite = wide.isfinite() & truth.isfinite() & (truth.abs() < limit)
    shares = measure.shares(excess, truth, finite)
    if (
        least_cosine
        and quantization_metrics(wide[finite], truth[finite], got.dtype)["cosine"] >= least_cosine
    ):
        shares = {}
    right = (wide.isnan() & truth.isnan()) | (wide == truth)
    right |= (beyond | measure.open) & ~wide.isfinite()
    right |= beyond & (excess.abs() <= MOST * measure.careful_error)
    if all(share <= 1 for share in shares.values()):
        right |= finite
    else:
        units = excess.abs() / measure.careful_error
        right |= finite & (units < (MOST if shares["elementwise"] > 1 else float(units[finite].mean())))
    worst = max(shares, key=lambda name: shares[name], default="")
    used = shares[worst] if worst else 0.0
    margins = (Margin(subject.case, subject.output, worst, used),) * bool(worst)
    reference = torch.where(truth.abs() >= limit, truth.sign() * math.inf, truth)
    units = torch.where(finite & ~right, excess.abs() / measure.careful_error, 0.0)
    shown = _index(units, int(units.argmax())) if used > 1 else None
    mismatch = _report(got, wide, reference, ~right, subject, used=used, shown=shown)
    if mismatch is not None and used > 1:
        mismatch = msgspec.structs.replace(mismatch, off=measure.describe(excess, truth, finite))
    return OutputComparison(mismatch, margins, got.numel())


def quantization_metrics(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> dict[str, float]:
    """Return `cosine`, `relative_l1`, `rmse` and `worst` over finite values (float64) of an output of `dtype`.

    `QuantizationTolerance` has the definitions.

    If all expected values are zero, only zeros are right.
    """
    error = got - expected
    if float(expected.abs().sum()) == 0.0:
        perfect = float(got.abs().sum()) == 0.0
        wrong = 0.0 if perfect else math.inf
        return {"cosine": 1.0 if perfect else 0.0, "relative_l1": wrong, "rmse": wrong, "worst": wrong}
    norms = float(got.norm() * expected.norm())
    rms = float(expected.square().mean().sqrt())
    beyond_rounding = (error.abs() - 0.5 * bounds.spacing(expected, dtype)).clamp(min=0.0)
    return {
        "cosine": float((got * expected).sum()) / norms if norms else 0.0,
        "relative_l1": float(error.abs().sum() / expected.abs().sum()),
        "rmse": float(error.square().mean().sqrt()) / rms,
        "worst": float(beyond_rounding.max()) / rms,
    }


def _shares(metrics: dict[str, float], tolerance: QuantizationTolerance) -> dict[str, float]:
    """Return the used share of each metric's tolerance; above 1, or NaN, is wrong."""
    used = {
        "cosine": _share(max(0.0, 1.0 - metrics["cosine"]), 1.0 - tolerance.cosine_min),
        "relative_l1": _share(metrics["relative_l1"], tolerance.relative_l1_max),
        "rmse": _share(metrics["rmse"], tolerance.rmse_max),
    }
    if tolerance.worst_max is not None:
        used["worst"] = _share(metrics["worst"], tolerance.worst_max)
    return used


def _share(error: float, allowed: float) -> float:
    """Return the share of the allowed error that is used; infinite for NaN, and for any error where none is allowed."""
    if math.isnan(error):
        return math.inf
    if error == 0.0:
        return 0.0
    return error / allowed if allowed else math.inf


def _compare_whole(
    got: torch.Tensor,
    expected: torch.Tensor,
    subject: _Subject,
    changes: torch.Tensor | None,
    *,
    steps: float,
) -> OutputComparison:
    """Compare integers and booleans: equal, up to the allowed `steps` apart, or wrong.

    Where the oracle's own rounding decides, 1 more or less is right.
    """
    wide, reference = got.to(torch.int64), expected.to(torch.int64)
    wrong = (wide - reference).abs() > steps
    if changes is not None:
        wrong &= ~(changes.any(dim=0) & ((wide - reference).abs() == 1))
    mismatch = _report(got, wide, reference, wrong, subject, used=math.inf)
    margins = () if mismatch else (Margin(subject.case, subject.output, "exact", 0.0),)
    return OutputComparison(mismatch, margins, got.numel())


def _elementwise(
    share: torch.Tensor, finite: torch.Tensor, right: torch.Tensor, empty: Margin
) -> tuple[Margin, ...]:
    """Return the worst element's share of its bound; nothing if a wrong element has no such share (NaN, Inf)."""
    if bool((~right & ~finite).any()):
        return ()
    if not share.any():
        return (empty,)
    place = int(share.argmax())
    worst = float(share.flatten()[place])
    if not math.isfinite(worst):
        return ()
    return (Margin(empty.case, empty.output, empty.measure, worst, _index(share, place)),)


def _index(values: torch.Tensor, place: int) -> tuple[int, ...]:
    """Return the index of a place that is counted over all axes."""
    return tuple(int(position) for position in np.unravel_index(place, values.shape))


def _unlike(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype, subject: _Subject) -> Mismatch:
    """Return the mismatch of two outputs of different dtypes or shapes."""
    wide = got.double()  # torch has no isnan and isinf for 8-bit floats
    return Mismatch(
        case=subject.case,
        output=subject.output,
        index=(),
        expected=f"{dtype_name(dtype)}{list(expected.shape)}",
        got=f"{dtype_name(got.dtype)}{list(got.shape)}",
        max_abs=None,
        wrong_share=1.0,
        nan_got=int(wide.isnan().sum()),
        nan_expected=int(expected.isnan().sum()),
        inf_got=int(wide.isinf().sum()),
        inf_expected=int(expected.isinf().sum()),
        shape=tuple(got.shape),
        expected_shape=tuple(expected.shape),
        dtype=dtype_name(got.dtype),
        expected_dtype=dtype_name(dtype),
    )


def _report(
    got: torch.Tensor,
    wide: torch.Tensor,
    reference: torch.Tensor,
    wrong: torch.Tensor,
    subject: _Subject,
    *,
    used: float,
    metrics: dict[str, float] | None = None,
    shown: tuple[int, ...] | None = None,
) -> Mismatch | None:
    """Describe the mismatch by its element `shown`, or by the first wrong one. `used`: the largest share of the tolerance."""
    count = int(wrong.sum())
    if count == 0:
        return None
    shown = shown or tuple(int(place) for place in wrong.nonzero()[0])
    finite = wide.isfinite() & reference.isfinite()
    error = (wide.double() - reference.double()).abs()[finite]
    expected_value, got_value = reference[shown].item(), wide[shown].item()
    digits = digits_of(expected_value, got_value, least=6)
    common = common_property(wide, reference, wrong, got.dtype)
    pattern = filter(None, (common, neighbours(wide, reference, shown)))
    return msgspec.structs.replace(
        _unlike(got, reference, got.dtype, subject),
        index=shown,
        expected=in_digits(expected_value, digits),
        got=in_digits(got_value, digits),
        max_abs=float(error.max()) if error.numel() else None,
        used=used if math.isfinite(used) else None,
        wrong_share=count / wrong.numel(),
        metrics=metrics or {},
        pattern=(*pattern, *inputs_at(shown, subject.inputs or {}, got.shape)),
        common=common,
    )
