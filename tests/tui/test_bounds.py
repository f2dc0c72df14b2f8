"""Bounds of a speedup stay true when they are rounded, and a mean over bounds of both kinds says so."""

from __future__ import annotations

import msgspec
import pytest

from harness.wire.latency import Bound
from sessions.speedups import speedup_of
from tests.support.journals import correct, latencies
from tui.vocabulary import estimate, signed_times, speedup


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        (1.2849, Bound.NONE, "1.28x"),
        (1.2851, Bound.AT_LEAST, ">= 1.28x"),
        (1.2811, Bound.AT_MOST, "<= 1.29x"),
        (1.15, Bound.AT_LEAST, ">= 1.15x"),
        (132.7, Bound.AT_LEAST, ">= 132x"),
        (132.2, Bound.AT_MOST, "<= 133x"),
        (1.2851, Bound.MIXED, "~ 1.29x"),
    ],
)
def test_lower_bound_is_rounded_down_and_an_upper_bound_up(value: float, bound: Bound, words: str) -> None:
    assert speedup(value, bound) == words


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        (1.29, Bound.AT_MOST, "<=1.3x"),
        (1.29, Bound.AT_LEAST, ">=1.2x"),
        (37.4, Bound.AT_LEAST, ">=37x"),
        (37.4, Bound.AT_MOST, "<=38x"),
        (1.29, Bound.NONE, "1.29x"),
        (1234.0, Bound.AT_LEAST, ">=1234x"),
    ],
)
def test_bound_in_a_narrow_cell_stays_true(value: float, bound: Bound, words: str) -> None:
    assert signed_times(value, bound, 6) == words


def test_estimate_is_an_upper_bound() -> None:
    assert estimate(1.341) == "est. <= 1.35x roof"


@pytest.mark.parametrize(
    ("bounds", "sign", "is_gain"),
    [
        ((Bound.NONE, Bound.AT_LEAST), ">=", True),
        ((Bound.NONE, Bound.AT_MOST), "<=", False),
        ((Bound.AT_LEAST, Bound.AT_MOST), "~", False),
    ],
)
def test_mean_over_bounds_of_both_kinds_is_no_gain(
    bounds: tuple[Bound, Bound], sign: str, *, is_gain: bool
) -> None:
    rows = [
        msgspec.structs.replace(row, bound=bound, speedup=2.0, ci=(1.9, 2.1))
        for row, bound in zip(latencies(), bounds, strict=True)
    ]
    evaluation = correct(speed=tuple(rows))
    mean = speedup_of(evaluation)
    assert mean is not None
    assert (mean.bound.sign, mean.is_gain, mean.interval) == (sign, is_gain, None)
    assert evaluation.speedup_bound is mean.bound
