"""What a GPU tells of itself: its state, and its clocks, heat, power and company while something is timed. Torch-free."""

from .asking import ask_once
from .client import Telemetry
from .messages import Point, StateTold, Watched
from .steadiness import DISTURBED_CLOCK, DISTURBED_OTHERS, steady

__all__ = [
    "DISTURBED_CLOCK",
    "DISTURBED_OTHERS",
    "Point",
    "StateTold",
    "Telemetry",
    "Watched",
    "ask_once",
    "steady",
]
