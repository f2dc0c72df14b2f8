"""The one comparison: a candidate's output against the oracle's, on the judge's side."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from harness.wire.evaluation import Margin, Mismatch
from suites.task import QuantizationTolerance, Tolerance

from . import bounds

_DIGITS = (6, 9, 17)
EXACT = Tolerance()


@dataclass(frozen=True, slots=True)
class Comparison:
    """One output of one case against the oracle's."""

    mismatch: Mismatch | None
    """Where and by how much it is wrong; `None` when it is right."""
    margins: tuple[Margin, ...]
    """How much of each tolerance is used; none where that has no figure: another kind, NaN, Inf, inexact integers."""
    elements: int


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
) -> Comparison:
    """Whether `got` is right, and how close it came to its tolerance.

    `expected` is the oracle's (float64 or integer), `dtype` what the output must have; `terms` is the length of the
    tolerance's reduction, `tf32` whether the device rounds to TF32. NaN must stand where NaN is expected and an infinity
    where the same infinity is; a finite value beyond the range of `dtype` is expected as infinity, and either will do
    where the tolerance reaches over that border. With `quantization` its metrics judge the finite values instead of
    `tolerance`.
    """
    if got.dtype != dtype or got.shape != expected.shape:
        return Comparison(_of_another_kind(got, expected, case=case, output=output, dtype=dtype), (), 0)
    if not dtype.is_floating_point:
        return _compare_whole(got, expected, case=case, output=output)
    wide, truth = got.double(), expected.double()
    limit = bounds.overflow(dtype)
    beyond = truth.isfinite() & (truth.abs() >= limit)
    reference = torch.where(beyond, truth.sign() * math.inf, truth)
    finite = wide.isfinite() & reference.isfinite()
    right = (wide.isnan() & truth.isnan()) | (wide == reference)
    metrics: dict[str, float] = {}
    margins: tuple[Margin, ...] = ()
    if quantization is None:
        bound = bounds.allowed(truth, dtype, tolerance, terms=terms, tf32=tf32)
        error = (wide - truth).abs()
        near = truth.isfinite() & (truth.abs() + bound >= limit)
        right |= wide.isfinite() & truth.isfinite() & (error <= bound)
        right |= near & wide.isinf() & (wide.sign() == truth.sign())
        measure = "exact" if tolerance == EXACT else "elementwise"
        margins = _elementwise(error, bound, finite, right, Margin(case, output, measure, 0.0))
    else:
        metrics = quantization_metrics(wide[finite], reference[finite], dtype)
        shares = _shares(metrics, quantization)
        if all(share <= 1 for share in shares.values()):
            right |= finite
        margins = tuple(
            Margin(case, output, name, share) for name, share in shares.items() if math.isfinite(share)
        )
    mismatch = _report(got, wide, reference, ~right, case=case, output=output, metrics=metrics)
    return Comparison(mismatch, margins, got.numel())


def quantization_metrics(got: torch.Tensor, expected: torch.Tensor, dtype: torch.dtype) -> dict[str, float]:
    """`cosine`, `relative_l1`, `rmse` and `worst` over finite values (float64) of an output of `dtype`, as `QuantizationTolerance` defines them.

    An expected output of zeros alone is met by zeros alone.
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


def _shares(metrics: dict[str, float], wanted: QuantizationTolerance) -> dict[str, float]:
    """Share of each metric's tolerance that is used; above 1 is wrong, and so is what is no number."""
    used = {
        "cosine": _share(max(0.0, 1.0 - metrics["cosine"]), 1.0 - wanted.cosine_min),
        "relative_l1": _share(metrics["relative_l1"], wanted.relative_l1_max),
        "rmse": _share(metrics["rmse"], wanted.rmse_max),
    }
    if wanted.worst_max is not None:
        used["worst"] = _share(metrics["worst"], wanted.worst_max)
    return used


def _share(error: float, allowed: float) -> float:
    if math.isnan(error):
        return math.inf
    if error == 0.0:
        return 0.0
    return error / allowed if allowed else math.inf


def _compare_whole(got: torch.Tensor, expected: torch.Tensor, *, case: str, output: str) -> Comparison:
    """Integers and booleans: equal or wrong."""
    wide, reference = got.to(torch.int64), expected.to(torch.int64)
    mismatch = _report(got, wide, reference, wide != reference, case=case, output=output, metrics={})
    margins = () if mismatch else (Margin(case, output, "exact", 0.0),)
    return Comparison(mismatch, margins, got.numel())


def _elementwise(
    error: torch.Tensor, bound: torch.Tensor, finite: torch.Tensor, right: torch.Tensor, empty: Margin
) -> tuple[Margin, ...]:
    """The worst element's share of its bound; none where an element is wrong in a way that has no share."""
    if bool((~right & ~finite).any()):
        return ()
    share = torch.where(finite & (error > 0), error / bound, 0.0)
    if not share.any():
        return (empty,)
    place = int(share.argmax())
    worst = float(share.flatten()[place])
    if not math.isfinite(worst):
        return ()
    index = tuple(int(one) for one in np.unravel_index(place, share.shape))
    return (Margin(empty.case, empty.output, empty.measure, worst, index),)


def _of_another_kind(
    got: torch.Tensor, expected: torch.Tensor, *, case: str, output: str, dtype: torch.dtype
) -> Mismatch:
    shape, dtype_got = tuple(got.shape), str(got.dtype).removeprefix("torch.")
    wanted = str(dtype).removeprefix("torch.")
    wide = got.double()  # 8-bit floats cannot be asked for NaN and Inf
    return Mismatch(
        case=case,
        output=output,
        index=(),
        expected=f"{wanted}{list(expected.shape)}",
        got=f"{dtype_got}{list(shape)}",
        max_abs=None,
        max_rel=None,
        wrong_share=1.0,
        nan_got=int(wide.isnan().sum()),
        nan_expected=int(expected.isnan().sum()),
        inf_got=int(wide.isinf().sum()),
        inf_expected=int(expected.isinf().sum()),
        shape=shape,
        expected_shape=tuple(expected.shape),
        dtype=dtype_got,
        expected_dtype=wanted,
    )


def _report(
    got: torch.Tensor,
    wide: torch.Tensor,
    reference: torch.Tensor,
    wrong: torch.Tensor,
    *,
    case: str,
    output: str,
    metrics: dict[str, float],
) -> Mismatch | None:
    """What is wrong, by the first wrong element; `wide` and `reference` are float64 or int64."""
    count = int(wrong.sum())
    if count == 0:
        return None
    first = tuple(int(place) for place in wrong.nonzero()[0])
    finite = wide.isfinite() & reference.isfinite()
    error, size = (wide.double() - reference.double()).abs()[finite], reference.double().abs()[finite]
    relative = error[size > 0] / size[size > 0]
    expected_text, got_text = _tell_apart(reference[first].item(), wide[first].item())
    name = str(got.dtype).removeprefix("torch.")
    return Mismatch(
        case=case,
        output=output,
        index=first,
        expected=expected_text,
        got=got_text,
        max_abs=float(error.max()) if error.numel() else None,
        max_rel=float(relative.max()) if relative.numel() else None,
        wrong_share=count / wrong.numel(),
        nan_got=int(wide.isnan().sum()),
        nan_expected=int(reference.isnan().sum()),
        inf_got=int(wide.isinf().sum()),
        inf_expected=int(reference.isinf().sum()),
        shape=tuple(got.shape),
        expected_shape=tuple(reference.shape),
        dtype=name,
        expected_dtype=name,
        metrics=metrics,
    )


def _tell_apart(expected: float, got: float) -> tuple[str, str]:
    """Both in as few digits as tell them apart; integers whole."""
    if isinstance(expected, int):
        return str(expected), str(got)
    texts = ("", "")
    for digits in _DIGITS:
        texts = (f"{expected:.{digits}g}", f"{got:.{digits}g}")
        if texts[0] != texts[1]:
            break
    return texts
