"""Ratios of latencies over simulated processes whose biases are known: what is found, what is not, how often wrongly."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.wire.latency import Outcome
from harness.wire.ratios import PAIRS_A_LOOK, RESOLVED, SMALLEST, Ratio, ratio

Sides = tuple[list[list[float]], list[list[float]]]


def simulated(
    seed: int, *, truth: float = 1.0, pairs: int = PAIRS_A_LOOK, bias: float = 0.01, samples: int = 6
) -> Sides:
    """A slow and a fast side whose true ratio is `truth`; each process has a bias, each sample some noise."""
    drawn = random.Random(seed)

    def side(ms: float) -> list[list[float]]:
        return [process(ms * math.exp(drawn.gauss(0, bias))) for _ in range(pairs)]

    def process(ms: float) -> list[float]:
        return [ms * (1 + abs(drawn.gauss(0, 0.005))) for _ in range(samples)]

    return side(truth), side(1.0)


def looked_at_twice(seed: int, *, truth: float = 1.0) -> Ratio:
    """As the clock does it: more pairs where the interval is wide."""
    slow, fast = simulated(seed, truth=truth, pairs=2 * PAIRS_A_LOOK)
    first = ratio(slow[:PAIRS_A_LOOK], fast[:PAIRS_A_LOOK])
    return first if first.half_width <= RESOLVED else ratio(slow, fast)


def test_kernels_that_differ_by_their_processes_bias_alone_are_hardly_ever_told_apart() -> None:
    outcomes = [looked_at_twice(seed).outcome for seed in range(1000)]
    assert outcomes.count(Outcome.FASTER) <= 10  # 1 %; a one-sided half of 5 % before `SMALLEST` is asked for
    assert outcomes.count(Outcome.SLOWER) <= 10


def test_a_tenth_is_found() -> None:
    outcomes = [looked_at_twice(1000 + seed, truth=1.1).outcome for seed in range(200)]
    assert outcomes.count(Outcome.FASTER) >= 190
    assert outcomes.count(Outcome.SLOWER) == 0


@pytest.mark.parametrize("pairs", [PAIRS_A_LOOK, 2 * PAIRS_A_LOOK])
@pytest.mark.parametrize("truth", [0.7, 1.3])
def test_the_interval_covers_the_truth(pairs: int, truth: float) -> None:
    found = [ratio(*simulated(seed, truth=truth, pairs=pairs)) for seed in range(500)]
    covered = sum(one.low <= truth <= one.high for one in found)
    assert covered >= 0.95 * 500


def test_a_process_that_is_far_off_widens_the_interval_and_many_samples_do_not_hide_it() -> None:
    slow, fast = [[1.0] * 500, [1.0] * 500, [1.5] * 500], [[1.0] * 500] * 3
    found = ratio(slow, fast)
    assert found.low < 1 < found.high
    assert found.outcome is Outcome.NOT_RESOLVED


@given(seed=st.integers(0, 1 << 16), truth=st.floats(0.2, 5), pairs=st.integers(2, 6))
def test_sides_swapped_give_the_inverse(seed: int, truth: float, pairs: int) -> None:
    slow, fast = simulated(seed, truth=truth, pairs=pairs)
    one, other = ratio(slow, fast), ratio(fast, slow)
    assert other.value == pytest.approx(1 / one.value)
    # Other draws of the bootstrap, so its ends move a little.
    assert (1 / other.high, 1 / other.low) == pytest.approx((one.low, one.high), rel=0.01)


@pytest.mark.parametrize(
    ("slow", "fast"), [([], []), ([[1.0]], [[1.0]]), ([[1.0], [1.0]], [[1.0]]), ([[1.0]], [[1.0], [1.0]])]
)
def test_fewer_than_two_pairs_give_no_ratio(slow: list[list[float]], fast: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="two or more pairs"):
        ratio(slow, fast)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1 + SMALLEST + 1e-6, 2, Outcome.FASTER),
        (1 + SMALLEST, 2, Outcome.NOT_RESOLVED),
        (1.001, 1.009, Outcome.NOT_RESOLVED),
        (0.5, 1 - SMALLEST, Outcome.NOT_RESOLVED),
        (0.5, 1 - SMALLEST - 1e-6, Outcome.SLOWER),
        (0.5, 2, Outcome.NOT_RESOLVED),
    ],
)
def test_outcomes_are_read_off_the_interval(low: float, high: float, outcome: Outcome) -> None:
    assert Ratio(math.sqrt(low * high), low, high).outcome is outcome
