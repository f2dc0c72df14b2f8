"""Telemetry of a GPU: its state, and its clocks, heat, power and processes during a timing. Torch-free."""

from .samples import Point, StateReport, Watched
from .steadiness import DISTURBED_CLOCK, DISTURBED_OTHERS, find_disturbances
from .watcher import Telemetry, ask_once

__all__ = [
    "DISTURBED_CLOCK",
    "DISTURBED_OTHERS",
    "Point",
    "StateReport",
    "Telemetry",
    "Watched",
    "ask_once",
    "find_disturbances",
]
