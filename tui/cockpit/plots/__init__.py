"""Plots as lines of text: pure functions of values, with block and braille characters or with ASCII alone."""

from .bars import Bar, share_bars, time_bars
from .intervals import Interval, interval_rows
from .scatter import Point, by_number, roofline

__all__ = [
    "Bar",
    "Interval",
    "Point",
    "by_number",
    "interval_rows",
    "roofline",
    "share_bars",
    "time_bars",
]
