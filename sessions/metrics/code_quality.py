"""Maintainability and complexity of a candidate's text, by radon."""

from __future__ import annotations

import warnings
from statistics import fmean

import msgspec


class CodeQuality(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one module."""

    maintainability: float
    """Maintainability index, 0 to 100; higher is better. Comments raise it (radon, `multi=True`), as in KernelBench-X."""
    mean_complexity: float
    """Mean cyclomatic complexity of its functions, methods and classes; 0 without any."""
    most_complexity: int
    """Complexity of the most complex one."""


def code_quality(source: str) -> CodeQuality | None:
    """Returns the quality of the candidate alone; `None` if it is no Python. About 10 ms.

    KernelBench-X uses the same functions on the candidate together with the benchmark's test.
    """
    # radon takes 40 ms to import, and few commands need it.
    from radon.complexity import cc_visit
    from radon.metrics import mi_visit

    try:
        with warnings.catch_warnings():
            # Invalid escapes in a candidate's strings.
            warnings.simplefilter("ignore")
            blocks = [block.complexity for block in cc_visit(source)]
            maintainability = mi_visit(source, multi=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return CodeQuality(
        maintainability=maintainability,
        mean_complexity=fmean(blocks) if blocks else 0.0,
        most_complexity=max(blocks, default=0),
    )
