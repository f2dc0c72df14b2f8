"""Turns results of a program into data, and compares them by a benchmark's own rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harness.wire.program_messages import ComparisonRule, ItemsValue, TensorValue, Value
from suites.task import QuantizationTolerance

from .expressions import data_of, tensor_problem

MOST_DEPTH = 50
"""Levels of nested lists and dictionaries."""
_MOST_INTEGER = 1 << 63
"""A larger integer is sent as text."""
_TINY = 1e-12
"""KernelBench-X's smallest divisor."""


def value_of(value: Any, depth: int = 0) -> Value:
    """Return a result as data. A list or dictionary below `MOST_DEPTH` levels becomes the name of its type."""
    match value:
        case list() | tuple() if depth < MOST_DEPTH:
            return ItemsValue(tuple(value_of(item, depth + 1) for item in value))
        case dict() if depth < MOST_DEPTH:
            items = tuple(value_of(item, depth + 1) for item in value.values())
            return ItemsValue(items, tuple(map(repr, value)))
        case torch.Tensor():
            return _tensor_value(value)
        case np.ndarray() if value.dtype.kind in "biuf":
            return _tensor_value(torch.from_numpy(np.ascontiguousarray(value)), is_array=True)
        case bool() | int() | np.integer() | np.bool_():
            return int(value) if abs(int(value)) < _MOST_INTEGER else str(value)
        case float() | np.floating():
            return float(value)
        case str():
            return value
        case _:
            return type(value).__name__


def _tensor_value(tensor: torch.Tensor, *, is_array: bool = False) -> Value:
    if tensor_problem(tensor):
        return f"{tensor.layout} tensor of {tensor.dtype}"
    plain = data_of(tensor.detach().resolve_conj().resolve_neg().cpu().contiguous())
    return TensorValue(plain.dtype, plain.shape, plain.data, is_array)


def find_difference(got: Value, expected: Value, rule: ComparisonRule, path: str) -> str:
    """Return the first difference in words; empty if the results are equal by the rule."""
    match got, expected:
        case (None, _) | (_, None):
            return f"{path} is missing"
        case ItemsValue(), ItemsValue() if (got.keys is None) == (expected.keys is None):
            return _items_difference(got, expected, rule, path)
        case TensorValue(), TensorValue():
            return _tensor_difference(got, expected, rule, path)
        case ((int() | float()), (int() | float())):
            exact = isinstance(got, int) and isinstance(expected, int)
            tolerance = 0.0 if exact else rule.tolerances.get("float64", rule.default_tolerance)
            if np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=rule.equal_nan):
                return ""
            return f"{path} is {got:g}, not {expected:g}"
        case _ if got == expected:
            return ""
        case _:
            return f"{path} differs: {_words(got)}, not {_words(expected)}"


def _items_difference(got: ItemsValue, expected: ItemsValue, rule: ComparisonRule, path: str) -> str:
    if expected.keys is None:
        if len(got.items) != len(expected.items):
            return f"{path} has {len(got.items)} items, not {len(expected.items)}"
    elif sorted(got.keys or ()) != sorted(expected.keys):
        return f"{path} has different keys: {', '.join(got.keys or ())[:100]}"
    items = dict(zip(got.keys or range(len(got.items)), got.items, strict=True))
    keys = expected.keys or range(len(expected.items))
    differences = (
        find_difference(items[key], item, rule, f"{path}[{key}]")
        for key, item in zip(keys, expected.items, strict=True)
    )
    return next(filter(None, differences), "")


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
        case ItemsValue():
            return "a list" if value.keys is None else "a dictionary"
        case str():
            return value[:60]
        case _:
            return f"{value:g}"
