"""Ratios, their intervals and times as text, on every surface. It imports nothing of a session, so that commands start fast."""

from __future__ import annotations

import math

UNKNOWN = "-"
"""A value that was not measured or is not known."""


def ratio_words(value: float | None, sign: str = "", digits: int = 2) -> str:
    """Returns a ratio with the sign of its bound: `1.42x`, `132x`, `>= 2.03x`; it has so many decimals below 100.

    A lower bound is rounded down, an upper bound up.
    """
    if value is None:
        return UNKNOWN
    step = 10.0 ** (digits if value < 99.5 else 0)
    # The small number keeps 1.29, which is no binary fraction, from becoming 1.28 or 1.30.
    if sign == ">=":
        value = math.floor(value * step + 1e-9) / step
    elif sign == "<=":
        value = math.ceil(value * step - 1e-9) / step
    return f"{sign} {value:.{digits if value < 99.5 else 0}f}x".lstrip()


def narrow_ratio(value: float, sign: str, width: int) -> str:
    """Returns a ratio for a cell of this width, without a space and with as many decimals as fit: `>=37.4x`."""
    texts = [ratio_words(value, sign, digits).replace(" ", "") for digits in (2, 1, 0)]
    return next((text for text in texts if len(text) <= width), texts[-1])


def interval_words(low: float, high: float) -> str:
    """Returns a 95 % interval: `[1.38, 1.45]`."""
    return f"[{low:.2f}, {high:.2f}]"


def measured_words(value: float, sign: str, low: float | None, high: float | None) -> str:
    """Returns a ratio with its 95 % interval, if that is known: `1.42x [1.38, 1.45]`. A bound has none: `>= 2.03x`."""
    words = ratio_words(value, sign)
    return words if sign or low is None or high is None else f"{words} {interval_words(low, high)}"


def us_words(ms: float | None) -> str:
    """Returns a time in microseconds, without the unit: `4.21`, `71.9`, `131.0`, `1234`."""
    if ms is None:
        return UNKNOWN
    value = ms * 1e3
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
