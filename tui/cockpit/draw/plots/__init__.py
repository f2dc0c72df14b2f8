"""Plots as lines of text: pure functions of values, with block and braille characters or with ASCII alone."""

from .bars import Bar, Interval, interval_rows, share_bars, time_bars
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
