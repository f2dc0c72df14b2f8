"""How attempts are made, by name."""

from __future__ import annotations

from engine.errors import UsageProblem

from .context import Context, Method, Review

__all__ = ["METHODS", "Context", "Method", "Review", "open_method"]

METHODS = ("geak", "tune")
"""Names of the methods that can be run."""


def open_method(name: str) -> Method:
    """The method of this name; `UsageProblem` lists them when there is none."""
    if name == "geak":
        from .geak import Geak

        return Geak()
    if name == "tune":
        from .tune import Tune

        return Tune()
    raise UsageProblem(f"no method is called {name!r}; there are: {', '.join(METHODS)}")
