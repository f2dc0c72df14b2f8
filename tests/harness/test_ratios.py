"""Ratios of latencies over simulated processes whose biases are known: what is found, what is not, how often wrongly."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.latency import Outcome
from harness.ratios import PAIRS_A_LOOK, RESOLVED, SMALLEST, Ratio, median_error, ratio

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


def test_the_two_looks_together_cover_the_truth() -> None:
    found = [looked_at_twice(seed, truth=1.3) for seed in range(500)]
    assert sum(one.low <= 1.3 <= one.high for one in found) >= 0.95 * 500


def test_more_pairs_narrow_the_interval() -> None:
    def usual(pairs: int) -> float:
        return statistics.median(ratio(*simulated(seed, pairs=pairs)).half_width for seed in range(40))

    assert usual(6) < usual(3) / 2


def test_a_process_that_is_far_off_widens_the_interval_and_many_samples_do_not_hide_it() -> None:
    slow, fast = [[1.0] * 500, [1.0] * 500, [1.5] * 500], [[1.0] * 500] * 3
    found = ratio(slow, fast)
    assert found.low < 1 < found.high
    assert found.outcome is Outcome.NOT_RESOLVED


@given(
    seed=st.integers(0, 1 << 16), scale=st.floats(1e-4, 1e4), truth=st.floats(0.2, 5), pairs=st.integers(2, 6)
)
def test_units_do_not_matter(seed: int, scale: float, truth: float, pairs: int) -> None:
    slow, fast = simulated(seed, truth=truth, pairs=pairs)
    one = ratio(slow, fast)
    other = ratio(
        [[sample * scale for sample in each] for each in slow],
        [[sample * scale for sample in each] for each in fast],
    )
    assert (other.value, other.low, other.high) == pytest.approx((one.value, one.low, one.high))


@given(seed=st.integers(0, 1 << 16), truth=st.floats(0.2, 5), pairs=st.integers(2, 6))
def test_sides_swapped_give_the_inverse(seed: int, truth: float, pairs: int) -> None:
    slow, fast = simulated(seed, truth=truth, pairs=pairs)
    one, other = ratio(slow, fast), ratio(fast, slow)
    assert other.value == pytest.approx(1 / one.value)
    # Other draws of the bootstrap, so its ends move a little.
    assert (1 / other.high, 1 / other.low) == pytest.approx((one.low, one.high), rel=0.01)


@given(seed=st.integers(0, 1 << 16), truth=st.floats(0.2, 5), pairs=st.integers(2, 6))
def test_the_interval_holds_the_ratio_and_is_the_same_each_time(seed: int, truth: float, pairs: int) -> None:
    slow, fast = simulated(seed, truth=truth, pairs=pairs)
    found = ratio(slow, fast)
    assert 0 < found.low <= found.value <= found.high
    assert ratio(slow, fast) == found


def test_processes_may_have_different_numbers_of_samples() -> None:
    found = ratio([[2.0] * 3, [2.0] * 40], [[1.0], [1.0] * 7])
    assert found.value == pytest.approx(2)


@pytest.mark.parametrize(
    ("slow", "fast"),
    [([], []), ([[1.0]], [[1.0]]), ([[1.0], [1.0]], [[1.0]]), ([[1.0]], [[1.0], [1.0]])],
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


@pytest.mark.parametrize("size", [9, 30, 200])
def test_the_error_of_a_median_is_that_of_medians_drawn_again(size: int) -> None:
    drawn = random.Random(size)
    samples = [[drawn.gauss(2.0, 0.1) for _ in range(size)] for _ in range(600)]
    truth = statistics.stdev(map(statistics.median, samples)) / 2.0
    told = statistics.fmean(map(median_error, samples))
    assert told == pytest.approx(truth, rel=0.15)


def test_a_few_samples_that_are_far_off_leave_the_error_of_the_median_alone() -> None:
    drawn = random.Random(0)
    samples = [drawn.gauss(1.0, 0.01) for _ in range(100)]
    assert median_error([*samples[:-3], 50.0, 60.0, 70.0]) < 2 * median_error(samples)


def test_one_sample_says_nothing_of_its_error() -> None:
    assert median_error([1.0]) == math.inf
    assert median_error([1.0, 1.0, 1.0]) == 0
