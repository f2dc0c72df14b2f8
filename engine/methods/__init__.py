"""The methods: how attempts are made, by name."""

from __future__ import annotations

from importlib import import_module

from engine.errors import UsageProblem
from sessions.events import gone_method
from sessions.settings import AGENT, MODULES

from .context import Context, Method, ReadyCandidate, Review, Start

__all__ = [
    "METHODS",
    "MODULES",
    "Context",
    "Method",
    "ReadyCandidate",
    "Review",
    "Start",
    "open_method",
    "require_method",
]

METHODS = {
    "geak": "write, judge, reflect on errors, optimize (AMD's GEAK)",
    "geak-evolve": "rounds of new kernels from the best (GEAK's version 2)",
    "reflexion": "try again from the error until a kernel is correct",
    "kernelagent": "parallel workers; the first correct kernel stops all",
    "direct": "one prompt, one reply, no further attempt",
    "tune": "no model: sweep the launch parameters of a kernel",
}
"""Every method with a short description for people who choose one."""

_PLACES = {
    "geak": ("geak", "Geak"),
    "geak-evolve": ("geak_evolve", "GeakEvolve"),
    "reflexion": ("reflexion", "Reflexion"),
    "kernelagent": ("kernelagent", "KernelAgent"),
    "direct": ("direct", "Direct"),
    "tune": ("tune", "Tune"),
    AGENT: ("agent", "Agent"),
    "predictions": ("ready", "Predictions"),
    "rejudge": ("ready", "Rejudge"),
}
"""Module and class of each method. The last three judge candidates of others; their own commands start them."""


def open_method(name: str) -> Method:
    """Returns the method of this name; `UsageProblem` lists the methods if the name is unknown."""
    if name not in _PLACES:
        raise UsageProblem(f"no method is called {name!r}; there are: {', '.join(METHODS)}")
    module, class_name = _PLACES[name]
    method: Method = getattr(import_module(f".{module}", __package__), class_name)()
    return method


def require_method(name: str, session: str) -> None:
    """Raise `UsageProblem` if no method has the name of an older session's: no attempt can follow there."""
    if problem := gone_method(name, session):
        raise UsageProblem(problem)
