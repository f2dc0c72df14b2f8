"""Turns results of a program into data, and compares them by a benchmark's own rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from msgspec.structs import replace

from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.program import ARRAY, Compare, Results, Value
from suites.task import QuantizationTolerance

from .expressions import data_of, tensor_problem

MOST_DEPTH = 50
"""Levels of nested lists and dictionaries."""
_MOST_INTEGER = 1 << 63
"""A larger integer is sent as text."""
_TINY = 1e-12
"""KernelBench-X's smallest divisor."""


def results_of(value: Any, path: str = "results", depth: int = 0) -> Results:
    """Return a result as data: the value of each part, by the part's path, such as `results[0]['x']`.

    A list or dictionary has a value too: its length or its keys, in words. Its items follow, each under the path with the place
    of the item, or with the `repr` of its key. Of keys with one `repr` the last counts. A list or dictionary below `MOST_DEPTH`
    levels, and a value that is neither tensor, number nor string, becomes the name of its type.

    A tuple becomes the same data as a list, and a boolean the same as 0 or 1, so `find_difference` takes them as equal.
    """
    items: dict[str, Any] = {}
    if depth < MOST_DEPTH and isinstance(value, list | tuple):
        part: Value = f"a list of {len(value)}"
        items = {str(place): item for place, item in enumerate(value)}
    elif depth < MOST_DEPTH and isinstance(value, dict):
        items = {repr(key): item for key, item in value.items()}
        part = f"a dictionary of {', '.join(sorted(items))}"
    else:
        part = _value_of(value)
    results = {path: part}
    for key, item in items.items():
        results |= results_of(item, f"{path}[{key}]", depth + 1)
    return results


def _value_of(value: Any) -> Value:
    """Return a single value as data; the name of its type if it is neither tensor, number nor string."""
    match value:
        case torch.Tensor():
            return _tensor_value(value)
        case np.ndarray() if value.dtype.kind in "biuf":
            return _tensor_value(torch.from_numpy(np.ascontiguousarray(value)), ARRAY)
        case bool() | int() | np.integer() | np.bool_():
            return int(value) if abs(int(value)) < _MOST_INTEGER else str(value)
        case float() | np.floating():
            return float(value)
        case str():
            return value
        case _:
            return type(value).__name__


def _tensor_value(tensor: torch.Tensor, prefix: str = "") -> Value:
    if tensor_problem(tensor):
        return f"{tensor.layout} tensor of {tensor.dtype}"
    plain = data_of(tensor.detach().resolve_conj().resolve_neg().cpu().contiguous())
    return replace(plain, dtype=f"{prefix}{plain.dtype}")


def find_difference(got: Results | None, expected: Results | None, rule: Compare) -> str:
    """Return the first difference in words; empty if the results are equal by the rule."""
    if got is None or expected is None:
        return "results are missing"
    for path, truth in expected.items():
        difference = _difference(got[path], truth, rule) if path in got else "is missing"
        if difference:
            return f"{path} {difference}"
    return ""


def _difference(got: Value, expected: Value, rule: Compare) -> str:
    """Compare two values by the rule; return the difference in words, or nothing. Integers must be equal."""
    if isinstance(got, TensorSpec) and isinstance(expected, TensorSpec):
        return _tensor_difference(got, expected, rule)
    if isinstance(got, int | float) and isinstance(expected, int | float):
        exact = isinstance(got, int) and isinstance(expected, int)
        tolerance = 0.0 if exact else rule.tolerances.get("float64", rule.default_tolerance)
        is_equal = bool(np.isclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=rule.equal_nan))
    else:
        is_equal = got == expected
    return "" if is_equal else f"is {str(got)[:60]}, not {str(expected)[:60]}"


def _tensor_difference(got: TensorSpec, expected: TensorSpec, rule: Compare) -> str:
    """Compare two tensors by the rule; return the difference in words, or nothing.

    Dtypes and shapes must be equal, strides need not be. Without a tolerance all bytes must be equal. Raises like `tensor_of`.
    """
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return f"is {got}, not {expected}"
    computed, truth = tensor_of(got), tensor_of(expected)
    if rule.quantization is not None and not got.dtype.startswith(ARRAY):
        return _quantized_difference(computed, truth, rule.quantization)
    tolerance = rule.tolerances.get(got.dtype.removeprefix(ARRAY), rule.default_tolerance)
    if not tolerance:
        return "" if got.data == expected.data else "differs"
    wide, wide_truth = computed.double(), truth.double()
    close = torch.isclose(wide, wide_truth, rtol=tolerance, atol=tolerance, equal_nan=rule.equal_nan)
    if bool(close.all()):
        return ""
    largest = float((wide - wide_truth).abs().nan_to_num(nan=float("inf")).max())
    return f"differs in {int((~close).sum())} of {close.numel()} elements, by {largest:.4g} at most"


def _quantized_difference(computed: torch.Tensor, truth: torch.Tensor, limits: QuantizationTolerance) -> str:
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
    return f"differs: cosine {cosine:.4g}, relative L1 {relative_l1:.4g}, RMSE {rmse:.4g}"


def tensor_of(value: TensorSpec) -> torch.Tensor:
    """Return data with its strides. Raises `ValueError` or `RuntimeError` if the bytes do not fill the shape."""
    dtype = getattr(torch, value.dtype.removeprefix(ARRAY))
    if not value.data:
        return torch.empty(value.shape, dtype=dtype)
    return torch.frombuffer(bytearray(value.data), dtype=dtype).as_strided(value.shape, value.strides)
