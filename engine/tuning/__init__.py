"""Sweeps of launch parameters: found in a kernel's text, tried by compiling alone, proposed best first."""

from .standing import RANKED_BY
from .sweep import Findings, Surveying, sweep
from .wording import strategy_of_start, strategy_of_variant

__all__ = ["RANKED_BY", "Findings", "Surveying", "strategy_of_start", "strategy_of_variant", "sweep"]
