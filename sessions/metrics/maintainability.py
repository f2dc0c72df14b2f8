"""Maintainability of a candidate's text, by radon."""

from __future__ import annotations

import warnings


def maintainability_of(source: str) -> float | None:
    """Returns the maintainability index of the candidate alone, 0 to 100; higher is better. `None` if it is no Python.

    Comments raise it (radon, `multi=True`), as in KernelBench-X, which measures the candidate together with the benchmark's
    test. About 10 ms.
    """
    # radon takes 40 ms to import, and few commands need it.
    from radon.metrics import mi_visit

    try:
        with warnings.catch_warnings():
            # Invalid escapes in a candidate's strings.
            warnings.simplefilter("ignore")
            return float(mi_visit(source, multi=True))
    except (SyntaxError, ValueError, RecursionError):
        return None
