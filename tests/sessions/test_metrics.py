"""Metrics (pass@k, fast_p, intervals) against their definitions, and the rank of attempts."""

from __future__ import annotations

import itertools
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Estimate, Evaluation, Verdict
from sessions.state import metrics
from sessions.state.ranking import rank
from tests.support.story import evaluation

CORRECT = evaluation(Verdict.CORRECT)
MIXED = [
    evaluation(Verdict.CORRECT, speedup=2.0),
    evaluation(Verdict.CORRECT, speedup=0.5),
    evaluation(Verdict.WRONG),
    evaluation(Verdict.CALL_ERROR),
    evaluation(Verdict.INFRA_ERROR),
]


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_correct_sample(samples: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    outcomes = [True] * correct + [False] * (samples - correct)
    draws = list(itertools.combinations(outcomes, k))
    assert metrics.pass_at_k(samples, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("samples", "correct", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_of_impossible_counts_is_an_error(samples: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        metrics.pass_at_k(samples, correct, k)


def test_mean_pass_at_k_needs_enough_samples_of_every_task() -> None:
    assert metrics.mean_pass_at_k([(4, 4), (4, 0)], 2) == 0.5
    assert metrics.mean_pass_at_k([(4, 4), (1, 1)], 2) is None
    assert metrics.mean_pass_at_k([], 1) is None


def test_accuracies_ignore_uncounted_verdicts() -> None:
    assert metrics.call_accuracy(MIXED) == 3 / 4
    assert metrics.execution_accuracy(MIXED) == 2 / 4
    assert metrics.correct_per_compile(MIXED) == 2 / 3
    assert metrics.call_accuracy([evaluation(Verdict.UNSUPPORTED)]) is None


def test_speedup_means_count_only_correct_attempts() -> None:
    assert metrics.speedup_mean(MIXED) == 1.25
    assert metrics.speedup_geomean(MIXED) == pytest.approx(1.0)
    assert metrics.speedup_mean([CORRECT]) is None
    assert metrics.speedup_geomean([]) is None


def test_fast_p_is_strict_and_none_if_unknown() -> None:
    assert metrics.fast_p(MIXED, 0) == 0.5
    assert metrics.fast_p(MIXED, 0.5) == 0.25
    assert metrics.fast_p(MIXED, 2.0) == 0.0
    assert metrics.fast_p([CORRECT, *MIXED], 1.0) is None
    assert metrics.fast_p([CORRECT], 0) == 1.0
    assert metrics.fast_p([evaluation(Verdict.WRONG)], 1.0) == 0.0


def with_estimate(high_us: float) -> Evaluation:
    bound = Estimate("gfx942", "small", {"n": 8}, 10.0, high_us, "memory", "memory", "peaks")
    return msgspec.structs.replace(CORRECT, estimate=(bound,))


def with_spills(count: int) -> Evaluation:
    kernel = msgspec.structs.replace(CORRECT.resources["gfx942"][0], vgpr_spills=count)
    return msgspec.structs.replace(CORRECT, resources={"gfx942": (kernel,)})


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (CORRECT, evaluation(Verdict.WRONG)),
        (evaluation(Verdict.WRONG), evaluation(Verdict.CALL_ERROR)),
        (evaluation(Verdict.CALL_ERROR), evaluation(Verdict.INFRA_ERROR)),
        (evaluation(Verdict.CORRECT, speedup=1.5), evaluation(Verdict.CORRECT, speedup=1.4)),
        (evaluation(Verdict.CORRECT, speedup=0.5), CORRECT),
        (with_estimate(20.0), with_estimate(30.0)),
        (with_estimate(20.0), CORRECT),
        (with_spills(0), with_spills(3)),
    ],
)
def test_better_evaluation_has_a_higher_rank(better: Evaluation, worse: Evaluation) -> None:
    assert rank(better) > rank(worse)


def test_less_traffic_ranks_higher_without_timing() -> None:
    lean = msgspec.structs.replace(CORRECT.traffic[0], requested_read_bytes=64)
    assert rank(msgspec.structs.replace(CORRECT, traffic=(lean,))) > rank(CORRECT)


def test_rank_of_unknown_facts_is_not_nan() -> None:
    bare = msgspec.structs.replace(CORRECT, traffic=(), resources={})
    assert not any(math.isnan(part) for part in rank(bare))
    assert rank(bare) == rank(bare)


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_interval_matches_newcombe(successes: int, trials: int, low: float, high: float) -> None:
    """Newcombe, Statistics in Medicine 17, 1998, 857-872, table I, method 3."""
    assert metrics.wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(
    ("first", "second", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_difference_interval_matches_newcombe(
    first: tuple[int, int], second: tuple[int, int], low: float, high: float
) -> None:
    """Newcombe, Statistics in Medicine 17, 1998, 873-890, table II, method 10."""
    assert metrics.difference_interval(first, second) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 50), st.data())
def test_intervals_contain_the_estimate_and_are_symmetric(trials: int, data: st.DataObject) -> None:
    first, second = (data.draw(st.integers(0, trials)) for _ in range(2))
    wilson = metrics.wilson_interval(first, trials)
    assert 0 <= wilson[0] <= first / trials <= wilson[1] <= 1
    forward = metrics.difference_interval((first, trials), (second, trials))
    backward = metrics.difference_interval((second, trials), (first, trials))
    assert forward[0] <= (first - second) / trials <= forward[1]
    assert forward == pytest.approx((-backward[1], -backward[0]))


def test_zero_trials_give_no_interval() -> None:
    assert metrics.wilson_interval(0, 0) is None
    assert metrics.difference_interval((0, 0), (1, 2)) is None
    with pytest.raises(ValueError, match="is not a share"):
        metrics.wilson_interval(3, 2)
