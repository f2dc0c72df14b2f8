"""Ratios as text. It imports nothing of a session, so that commands start fast."""

from __future__ import annotations

import math


def times(value: float) -> str:
    """Returns a ratio as text: `1.42x`, `132x`."""
    return f"{value:.2f}x" if value < 99.5 else f"{value:.0f}x"


def signed(value: float, sign: str) -> str:
    """Returns a ratio with the sign of its bound: `>= 2.03x`. A lower bound is rounded down, an upper bound up."""
    if not sign:
        return times(value)
    step = 100.0 if value < 99.5 else 1.0
    # The small number keeps 1.29, which is no binary fraction, from becoming 1.28 or 1.30.
    if sign == ">=":
        value = math.floor(value * step + 1e-9) / step
    elif sign == "<=":
        value = math.ceil(value * step - 1e-9) / step
    return f"{sign} {times(value)}"
