"""Ratios as text. It imports nothing of a session, so that commands start fast."""

from __future__ import annotations

import math


def times(value: float, digits: int = 2) -> str:
    """Returns a ratio as text: `1.42x`, `132x`; it has so many decimals below 100."""
    return f"{value:.{digits if value < 99.5 else 0}f}x"


def signed(value: float, sign: str, digits: int = 2) -> str:
    """Returns a ratio with the sign of its bound: `>= 2.03x`. A lower bound is rounded down, an upper bound up."""
    if not sign:
        return times(value, digits)
    step = 10.0 ** (digits if value < 99.5 else 0)
    # The small number keeps 1.29, which is no binary fraction, from becoming 1.28 or 1.30.
    if sign == ">=":
        value = math.floor(value * step + 1e-9) / step
    elif sign == "<=":
        value = math.ceil(value * step - 1e-9) / step
    return f"{sign} {times(value, digits)}"


def narrow(value: float, sign: str, width: int) -> str:
    """Returns a ratio for a cell of this width, without a space and with as many decimals as fit: `>=37.4x`."""
    texts = [signed(value, sign, digits).replace(" ", "") for digits in (2, 1, 0)]
    return next((text for text in texts if len(text) <= width), texts[-1])
