"""Telemetry of a GPU: its state, and its clocks, heat, power and processes during a timing. Torch-free."""

from .samples import Point, StateReport, Watched
from .steadiness import SpanState, is_same_clock, span_states
from .watcher import Telemetry, ask_once

__all__ = [
    "Point",
    "SpanState",
    "StateReport",
    "Telemetry",
    "Watched",
    "ask_once",
    "is_same_clock",
    "span_states",
]
