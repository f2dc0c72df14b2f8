"""How attempts are made, by name."""

from __future__ import annotations

from importlib import import_module

from engine.errors import UsageProblem

from .context import MODULES, Context, Method, Review

__all__ = ["METHODS", "MODULES", "Context", "Method", "Review", "open_method"]

_PLACES = {
    "geak": ("geak", "Geak"),
    "geak-evolve": ("geak_evolve", "GeakEvolve"),
    "reflexion": ("reflexion", "Reflexion"),
    "kernelagent": ("kernelagent", "KernelAgent"),
    "direct": ("direct", "Direct"),
    "tune": ("tune", "Tune"),
}
"""Module and class of each."""

METHODS = tuple(_PLACES)
"""Names of the methods that can be run."""


def open_method(name: str) -> Method:
    """The method of this name; `UsageProblem` lists them when there is none."""
    if name not in _PLACES:
        raise UsageProblem(f"no method is called {name!r}; there are: {', '.join(METHODS)}")
    module, kind = _PLACES[name]
    method: Method = getattr(import_module(f".{module}", __package__), kind)()
    return method
