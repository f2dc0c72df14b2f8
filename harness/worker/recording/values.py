"""Turns results of a program into data, and compares them by a benchmark's own rule."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from harness.wire.program_messages import (
    ComparisonRule,
    DictValue,
    ListValue,
    NumberValue,
    OtherValue,
    TensorValue,
    Value,
)
from harness.worker.kit import arena
from suites.dtypes import ITEM_BYTES
from suites.task import QuantizationTolerance

MOST_DEPTH = 50
"""Levels of nested lists and dictionaries."""
_TINY = 1e-12
"""KernelBench-X's smallest divisor."""


def value_of(value: Any, depth: int = 0) -> Value:
    """Return a result as data. A list or dictionary below `MOST_DEPTH` levels becomes the name of its type."""
    if depth < MOST_DEPTH and isinstance(value, list | tuple):
        return ListValue(tuple(value_of(item, depth + 1) for item in value))
    if depth < MOST_DEPTH and isinstance(value, dict):
        return DictValue(tuple(map(repr, value)), tuple(value_of(item, depth + 1) for item in value.values()))
    if isinstance(value, torch.Tensor):
        return _tensor_value(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return _tensor_value(torch.from_numpy(np.ascontiguousarray(value)), is_array=True)
    if isinstance(value, bool | int | np.integer | np.bool_) and abs(int(value)) <= sys.float_info.max:
        return NumberValue(float(value), is_exact=True)
    if isinstance(value, float | np.floating):
        return NumberValue(float(value), is_exact=False)
    return OtherValue(value if isinstance(value, str) else type(value).__name__)


def _tensor_value(tensor: torch.Tensor, *, is_array: bool = False) -> Value:
    with torch.no_grad():
        plain = tensor.detach()
        dtype = arena.dtype_name(plain.dtype)
        if plain.layout is not torch.strided or dtype not in ITEM_BYTES:
            return OtherValue(f"{plain.layout} tensor of {dtype}")
        plain = plain.resolve_conj().resolve_neg().cpu().contiguous()
        data = arena.storage_bytes(plain) if plain.numel() else b""
    return TensorValue(dtype, tuple(plain.shape), data, is_array)


def find_difference(got: Value | None, expected: Value | None, rule: ComparisonRule, path: str) -> str:
    """Return the first difference in words; empty if the results are equal by the rule."""
    if got is None or expected is None:
        return f"{path} is missing"
    if isinstance(got, ListValue) and isinstance(expected, ListValue):
        if len(got.items) != len(expected.items):
            return f"{path} has {len(got.items)} items, not {len(expected.items)}"
        paths = [f"{path}[{place}]" for place in range(len(got.items))]
        return _first_difference(got.items, expected.items, rule, paths)
    if isinstance(got, DictValue) and isinstance(expected, DictValue):
        if sorted(got.keys) != sorted(expected.keys):
            return f"{path} has different keys: {', '.join(got.keys)[:100]}"
        items = dict(zip(got.keys, got.items, strict=True))
        return _first_difference(
            [items[key] for key in expected.keys],
            expected.items,
            rule,
            [f"{path}[{key}]" for key in expected.keys],
        )
    if isinstance(got, TensorValue) and isinstance(expected, TensorValue):
        return _tensor_difference(got, expected, rule, path)
    if isinstance(got, NumberValue) and isinstance(expected, NumberValue):
        return _number_difference(got, expected, rule, path)
    return "" if got == expected else f"{path} differs: {_words(got)}, not {_words(expected)}"


def _first_difference(
    got: Sequence[Value], expected: Sequence[Value], rule: ComparisonRule, paths: Sequence[str]
) -> str:
    for item, expected_item, path in zip(got, expected, paths, strict=True):
        difference = find_difference(item, expected_item, rule, path)
        if difference:
            return difference
    return ""


def _tensor_difference(got: TensorValue, expected: TensorValue, rule: ComparisonRule, path: str) -> str:
    if (got.dtype, got.shape, got.is_array) != (expected.dtype, expected.shape, expected.is_array):
        return f"{path} is {_words(got)}, not {_words(expected)}"
    computed, truth = _tensor(got), _tensor(expected)
    if rule.quantization is not None and not got.is_array:
        return _quantized_difference(computed, truth, rule.quantization, path)
    tolerance = rule.tolerances.get(got.dtype, rule.default_tolerance)
    if not tolerance:
        return "" if got.data == expected.data else f"{path} differs"
    wide, wide_truth = computed.double(), truth.double()
    close = torch.isclose(wide, wide_truth, rtol=tolerance, atol=tolerance, equal_nan=rule.equal_nan)
    if bool(close.all()):
        return ""
    largest = float((wide - wide_truth).abs().nan_to_num(nan=float("inf")).max())
    return f"{path} differs in {int((~close).sum())} of {close.numel()} elements, by {largest:.4g} at most"


def _quantized_difference(
    computed: torch.Tensor, truth: torch.Tensor, limits: QuantizationTolerance, path: str
) -> str:
    """Compare a whole output by KernelBench-X's metrics; its RMSE is absolute."""
    got, expected = computed.float(), truth.float()
    norms = [float(torch.linalg.vector_norm(tensor)) for tensor in (got, expected)]
    if max(norms) < _TINY:
        cosine = 1.0
    elif min(norms) < _TINY:
        cosine = 0.0
    else:
        cosine = float(torch.nn.functional.cosine_similarity(got.reshape(1, -1), expected.reshape(1, -1)))
    relative_l1 = float((got - expected).abs().sum() / expected.abs().sum().clamp_min(_TINY))
    rmse = float(((got - expected) ** 2).mean().sqrt())
    if cosine >= limits.cosine_min and relative_l1 <= limits.relative_l1_max and rmse <= limits.rmse_max:
        return ""
    return f"{path}: cosine {cosine:.4g}, relative L1 {relative_l1:.4g}, RMSE {rmse:.4g}"


def _number_difference(got: NumberValue, expected: NumberValue, rule: ComparisonRule, path: str) -> str:
    exact = got.is_exact and expected.is_exact
    tolerance = 0.0 if exact else rule.tolerances.get("float64", rule.default_tolerance)
    if np.isclose(got.number, expected.number, rtol=tolerance, atol=tolerance, equal_nan=rule.equal_nan):
        return ""
    return f"{path} is {got.number:g}, not {expected.number:g}"


def _tensor(value: TensorValue) -> torch.Tensor:
    """Return data as a tensor. Raises `ValueError` or `RuntimeError` if the bytes do not fill the shape."""
    dtype = getattr(torch, value.dtype)
    if not value.data:
        return torch.empty(value.shape, dtype=dtype)
    return torch.frombuffer(bytearray(value.data), dtype=dtype).reshape(value.shape)


def _words(value: Value) -> str:
    match value:
        case TensorValue():
            return f"{value.dtype}{list(value.shape)}"
        case NumberValue():
            return f"{value.number:g}"
        case OtherValue():
            return value.text[:60]
        case ListValue():
            return "a list"
        case DictValue():
            return "a dictionary"
