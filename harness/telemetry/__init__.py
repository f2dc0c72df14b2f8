"""What a GPU tells of itself: its state, and its clocks, heat, power and company while something is timed. Torch-free."""

from .client import Telemetry
from .messages import Point, Watched
from .steadiness import DISTURBED_CLOCK, DISTURBED_OTHERS, steady

__all__ = ["DISTURBED_CLOCK", "DISTURBED_OTHERS", "Point", "Telemetry", "Watched", "steady"]
