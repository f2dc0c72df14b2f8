"""Sweeps of launch parameters: find them in the source, try variants by compiling, propose the best first."""

from .prospect import RANKED_BY
from .rungs import FIELD, mark_kept, rungs, survivors
from .sweep import Findings, Surveying, sweep
from .sweep_words import strategy_of_start, strategy_of_variant

__all__ = [
    "FIELD",
    "RANKED_BY",
    "Findings",
    "Surveying",
    "mark_kept",
    "rungs",
    "strategy_of_start",
    "strategy_of_variant",
    "survivors",
    "sweep",
]
