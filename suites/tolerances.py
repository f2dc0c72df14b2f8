"""Choice of the tolerance for an output, and checks of a task's tolerances."""

from __future__ import annotations

import math
from collections.abc import Iterator

from suites.dtypes import TASK_DTYPES, is_exact
from suites.errors import nearest
from suites.task import Case, Output, QuantizationTolerance, Task, Tolerance

Problem = tuple[str, str]
"""Key and problem."""


UNMEASURED = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-3, "bfloat16": 2e-2}
"""Values of `rtol` and `scale` by dtype of an output, where nothing measures the errors of careful arithmetic."""
EIGHT_BITS = 0.3


def unmeasured(dtype: str) -> Tolerance:
    """Return the tolerance of an output where no reference gives a measure."""
    limit = UNMEASURED.get(dtype, EIGHT_BITS)
    return Tolerance(rtol=limit, scale=limit)


def allowance_words(limit: Tolerance) -> str:
    """Return the terms of a tolerance that are not 0; empty if it has none."""
    names = ("rtol", "atol", "ulps", "scale", "cosine")
    parts = [f"{name} {value:g}" for name in names if (value := float(getattr(limit, name)))]
    parts += [f"accumulation {limit.accumulation:g} over {limit.reduction}"] * bool(limit.accumulation)
    return ", ".join(parts)


def dtype_of(output: Output, case: Case) -> str:
    """Return the name of an output's dtype in a case."""
    return case.dtype if output.dtype == "input" else output.dtype


def tolerance_of(task: Task, output: Output, case: Case) -> Tolerance:
    """Return the tolerance of an output in a case: its own, else the task's, else exact."""
    dtype = dtype_of(output, case)
    return output.tolerances.get(dtype) or task.tolerances.get(dtype) or Tolerance()


def tolerance_problems(task: Task) -> Iterator[Problem]:
    """Yield the problems of a task's tolerances, key and problem: bad values, unknown dtypes, and dtypes without an entry."""
    axes = set(task.cases[0].cpu) if task.cases else set()
    tables = [("tolerances", task.tolerances)]
    tables += [
        (f"outputs[{place}].tolerances", output.tolerances) for place, output in enumerate(task.outputs)
    ]
    for key, table in tables:
        for dtype, tolerance in table.items():
            if dtype not in TASK_DTYPES:
                yield f"{key}.{dtype}", f"is no dtype{nearest(dtype, TASK_DTYPES)}"
            yield from _tolerance(f"{key}.{dtype}", tolerance, axes)
    if task.quantization is not None:
        yield from _quantization(task.quantization, axes)
        return
    wanted = {
        dtype_of(output, case) for output in task.outputs for case in task.cases if not output.tolerances
    }
    for place, output in enumerate(task.outputs):
        if output.tolerances:
            used = {dtype_of(output, case) for case in task.cases} - set(task.tolerances)
            for dtype in sorted(used - set(output.tolerances)):
                yield f"outputs[{place}].tolerances", f"has no entry for {dtype}, which a case uses"
    for dtype in sorted(dtype for dtype in wanted - set(task.tolerances) if not is_exact(dtype)):
        yield "tolerances", f"has no entry for {dtype}, which an output has in a case"


def _tolerance(key: str, tolerance: Tolerance, axes: set[str]) -> Iterator[Problem]:
    """Yield the problems of one tolerance: its key and the problem. `axes` are the sizes that a `reduction` may name."""
    for name in ("rtol", "atol", "scale", "cosine"):
        if not 0 <= getattr(tolerance, name) < 1:
            yield f"{key}.{name}", f"is {getattr(tolerance, name)}; it must be from 0 up to 1"
    for name in ("ulps", "accumulation"):
        value = getattr(tolerance, name)
        if not (value >= 0 and math.isfinite(value)):
            yield f"{key}.{name}", f"is {value}; it must be a finite number, 0 or more"
    if bool(tolerance.accumulation) != bool(tolerance.reduction):
        yield (
            f"{key}.reduction",
            "and `accumulation` need each other: the axis of the sum, and its factor",
        )
    elif tolerance.reduction and tolerance.reduction not in axes:
        yield (
            f"{key}.reduction",
            f"{tolerance.reduction!r} is no size of the cases{nearest(tolerance.reduction, axes)}",
        )


def _quantization(quantization: QuantizationTolerance, axes: set[str]) -> Iterator[Problem]:
    """Yield the problems of a task's limits for quantized outputs: key and problem."""
    if not -1 < quantization.cosine_min <= 1:
        yield "quantization.cosine_min", f"is {quantization.cosine_min}; a cosine must be between -1 and 1"
    for name in ("relative_l1_max", "rmse_max"):
        if not 0 <= getattr(quantization, name) < 1:
            yield f"quantization.{name}", f"is {getattr(quantization, name)}; it must be from 0 up to 1"
    worst = quantization.worst_max
    if worst is not None and not 0 <= worst < 10:
        yield "quantization.worst_max", f"is {worst}; it must be from 0 up to 10"
    if quantization.probe is not None:
        yield from _tolerance("quantization.probe", quantization.probe, axes)
