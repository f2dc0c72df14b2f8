"""Sweeps of launch parameters: found in a kernel's text, tried by compiling alone, proposed best first."""

from .rungs import FIELD, decided, rungs, survivors
from .standing import RANKED_BY
from .sweep import Findings, Surveying, sweep
from .wording import strategy_of_start, strategy_of_variant

__all__ = [
    "FIELD",
    "RANKED_BY",
    "Findings",
    "Surveying",
    "decided",
    "rungs",
    "strategy_of_start",
    "strategy_of_variant",
    "survivors",
    "sweep",
]
