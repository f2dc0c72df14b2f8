"""The one comparison: a candidate's output against the oracle's, on the judge's side."""

from __future__ import annotations

import math

import torch

from harness.evaluation import Mismatch
from suites.task import QuantizationTolerance, Tolerance

_DIGITS = (6, 9, 17)
EXACT = Tolerance(rtol=0.0, atol=0.0)


def compare(
    got: torch.Tensor,
    expected: torch.Tensor,
    *,
    case: str,
    output: str,
    dtype: torch.dtype,
    tolerance: Tolerance,
    quantization: QuantizationTolerance | None,
) -> Mismatch | None:
    """Where and by how much `got` is wrong; `None` when it is right.

    `expected` is the oracle's (float64 or integer), `dtype` what the output must have. NaN must stand where NaN is
    expected and an infinity where the same infinity is; a finite value beyond the range of `dtype` is expected as
    infinity. With `quantization` the three metrics judge the finite values instead of `tolerance`.
    """
    if got.dtype != dtype or got.shape != expected.shape:
        return _of_another_kind(got, expected, case=case, output=output, dtype=dtype)
    if not dtype.is_floating_point:
        wide, reference = got.to(torch.int64), expected.to(torch.int64)
        wrong = wide != reference
        return _report(got, wide.double(), reference.double(), wrong, case=case, output=output, metrics={})
    wide, reference = got.double(), expected.double()
    rounded = reference.to(dtype).double()
    reference = torch.where(rounded.isinf(), rounded, reference)
    finite = wide.isfinite() & reference.isfinite()
    special = (wide.isnan() & reference.isnan()) | (wide == reference)
    wrong = ~finite & ~special
    metrics: dict[str, float] = {}
    if quantization is None:
        bound = tolerance.atol + tolerance.rtol * reference.abs()
        wrong |= finite & ((wide - reference).abs() > bound)
    else:
        metrics = quantization_metrics(wide[finite], reference[finite])
        if not _within(metrics, quantization):
            wrong |= finite & (wide != reference)
    return _report(got, wide, reference, wrong, case=case, output=output, metrics=metrics)


def quantization_metrics(got: torch.Tensor, expected: torch.Tensor) -> dict[str, float]:
    """`cosine`, `relative_l1` and `rmse` over finite values, as `QuantizationTolerance` defines them.

    An expected output of zeros alone is met by zeros alone.
    """
    error = got - expected
    norms = float(got.norm() * expected.norm())
    if float(expected.abs().sum()) == 0.0:
        perfect = float(got.abs().sum()) == 0.0
        worst = 0.0 if perfect else math.inf
        return {"cosine": 1.0 if perfect else 0.0, "relative_l1": worst, "rmse": worst}
    return {
        "cosine": float((got * expected).sum()) / norms if norms else 0.0,
        "relative_l1": float(error.abs().sum() / expected.abs().sum()),
        "rmse": float(error.square().mean().sqrt() / expected.square().mean().sqrt()),
    }


def _within(metrics: dict[str, float], wanted: QuantizationTolerance) -> bool:
    return (
        metrics["cosine"] >= wanted.cosine_min
        and metrics["relative_l1"] <= wanted.relative_l1_max
        and metrics["rmse"] <= wanted.rmse_max
    )


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
    count = int(wrong.sum())
    if count == 0:
        return None
    first = tuple(int(place) for place in wrong.nonzero()[0])
    finite = wide.isfinite() & reference.isfinite()
    error, size = (wide - reference).abs()[finite], reference.abs()[finite]
    relative = error[size > 0] / size[size > 0]
    expected_text, got_text = _tell_apart(float(reference[first]), float(wide[first]))
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
    texts = ("", "")
    for digits in _DIGITS:
        texts = (f"{expected:.{digits}g}", f"{got:.{digits}g}")
        if texts[0] != texts[1]:
            break
    return texts
