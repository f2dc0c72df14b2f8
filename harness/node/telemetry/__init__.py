"""What a GPU tells of itself: its state, and its clocks, heat, power and company while something is timed. Torch-free."""

from .device_state import ask_once
from .samples import Point, StateTold, Watched
from .steadiness import DISTURBED_CLOCK, DISTURBED_OTHERS, steady
from .watcher import Telemetry

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
