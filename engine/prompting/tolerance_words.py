"""A task's tolerances in words: how exact a kernel must be, with the relative error that the largest case allows."""

from __future__ import annotations

import math
from collections.abc import Iterator

from suites import Case, Output, Task
from suites.tolerances import dtype_of, tolerance_of

EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz"), 2.0**-3),
    **dict.fromkeys(("float8_e5m2", "float8_e5m2fnuz"), 2.0**-2),
}
"""Distance from 1 to the next value of a dtype."""
ACCUMULATED_IN = 2.0**-24
"""Rounding error of a float32 sum's terms; `accumulation` is a multiple of it."""
ONE_ROUNDING = 0.75
"""Highest ratio of allowed error to epsilon that allows only the final rounding: one rounding takes 0.5, two take 1."""
CAREFUL = 1000.0
_MEASURED = (
    "as exact as careful arithmetic: sums, products and functions in `float32` (operands of products in the dtype of the inputs), "
    "rounded once to the output's dtype. No error may be common to all values, as a factor of 1.001."
)
COARSER = ("float32", "float16", "bfloat16", "float8_e4m3fn")
"""Dtypes in which a kernel may round on the way, finest first."""


def tolerance_words(task: Task) -> Iterator[str]:
    """Yield one sentence per dtype of the open cases; one per output if they differ."""
    if task.quantization is not None:
        limits = task.quantization
        truth = "of the stated quantization" if task.script is None else "without any quantization"
        yield (
            f"Whole outputs are compared with the exact result {truth}, so every element counts a little. All have to hold: "
            f"cosine similarity at least {limits.cosine_min:g}; relative L1 error at most {limits.relative_l1_max:g}; root mean "
            f"square error at most {limits.rmse_max:g} times the root mean square of the result."
        )
        if task.script is not None:
            yield "Where inputs of the stated widths miss a limit by themselves, 1.25 times their error is the limit."
        return
    # By dtype and output, the largest error that any case allows.
    sentences: dict[str, dict[str, str]] = {}
    pairs = [(output, case) for case in task.open_cases for output in task.outputs_of(case)]
    keys = dict.fromkeys((output.name, dtype_of(output, case)) for output, case in pairs)
    for name, dtype in keys:
        allowed = [
            _allowed(task, output, case)
            for output, case in pairs
            if (output.name, dtype_of(output, case)) == (name, dtype)
        ]
        is_measured = dtype in task.tolerances and task.tolerances[dtype].measured
        sentences.setdefault(dtype, {})[name] = _MEASURED if is_measured else _words(dtype, max(allowed))
    for dtype in sorted(sentences):
        if len(set(sentences[dtype].values())) == 1:
            yield f"`{dtype}`: {next(iter(sentences[dtype].values()))}"
        else:
            yield from (f"`{name}`, `{dtype}`: {words}" for name, words in sentences[dtype].items())


def _words(dtype: str, allowed: float) -> str:
    epsilon = EPSILON.get(dtype)
    if epsilon is None or allowed == 0:
        return "exact." if allowed == 0 else "almost exact."
    if allowed <= ONE_ROUNDING * epsilon:
        return f"as exact as one final rounding to `{dtype}` (about {allowed:.1e} relative); any earlier rounding shows."
    kind = f"as exact as careful arithmetic in `{dtype}` throughout"
    if allowed > CAREFUL * epsilon:
        kind = "room for a different order of operations"
    roundings = f"about {allowed:.1e} relative, {float(f'{2 * allowed / epsilon:.2g}'):g} times one rounding to `{dtype}`"
    coarser = next((name for name in COARSER if EPSILON[name] > max(2 * allowed, epsilon)), None)
    return f"{kind} ({roundings})" + (f"; one rounding to `{coarser}` may exceed it." if coarser else ".")


def _allowed(task: Task, output: Output, case: Case) -> float:
    """About the relative error that an output may have, from the parts of its tolerance that grow with its values."""
    tolerance = tolerance_of(task, output, case)
    terms = max(case.cpu.get(tolerance.reduction, 0), case.gpu.get(tolerance.reduction, 0))
    summed = tolerance.accumulation * ACCUMULATED_IN * math.sqrt(terms)
    return tolerance.rtol + tolerance.ulps * EPSILON.get(dtype_of(output, case), 0.0) + summed
