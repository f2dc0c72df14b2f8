"""A task's tolerances in words: how exact a kernel has to be, without the figures that the exam is marked with."""

from __future__ import annotations

from collections.abc import Iterator

from suites import Task

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""Distance from 1 to the next value of a dtype."""
ONE_ROUNDING = 2.0
"""Relative tolerance over epsilon up to which nothing but the last rounding is forgiven."""
CAREFUL = 1000.0


def tolerance_words(task: Task) -> Iterator[str]:
    """One sentence a dtype."""
    if task.quantization is not None:
        yield (
            "Whole outputs are compared with the exact result of the stated quantization: cosine similarity, relative L1 "
            "error and root mean square error all have to hold, so every element counts a little."
        )
        return
    for dtype, tolerance in sorted(task.tolerances.items()):
        epsilon = EPSILON.get(dtype)
        if epsilon is None:
            yield (
                f"`{dtype}`: exact." if tolerance.rtol == tolerance.atol == 0 else f"`{dtype}`: almost exact."
            )
        elif tolerance.rtol <= ONE_ROUNDING * epsilon:
            yield f"`{dtype}`: as exact as one final rounding to `{dtype}` allows; any earlier rounding shows."
        elif tolerance.rtol <= CAREFUL * epsilon:
            yield f"`{dtype}`: as exact as careful arithmetic in `{dtype}` throughout; a coarser dtype on the way shows."
        else:
            yield f"`{dtype}`: room for a different order of operations, not for a coarser dtype."
