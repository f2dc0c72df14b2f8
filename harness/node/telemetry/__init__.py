"""Telemetry of a GPU: its state, and its clocks, heat, power and processes during a timing. Torch-free."""

from .samples import DevicePoint, StateReport, Watched
from .watcher import Telemetry, ask_once
from .window_summary import SpanState, is_same_clock, span_states

__all__ = [
    "DevicePoint",
    "SpanState",
    "StateReport",
    "Telemetry",
    "Watched",
    "ask_once",
    "is_same_clock",
    "span_states",
]
