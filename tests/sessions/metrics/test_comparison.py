"""Comparison of two sides: equal budget, tests that keep their level, and figures from hand calculation."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import permutation_test

from harness import Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.comparison import (
    compare_all,
    discordant_interval,
    exact_mcnemar,
    holm,
    sign_flips,
)
from sessions.metrics.equal_budget import EqualCost, pair_tasks
from sessions.state.state import Confirmation
from tests.support.sessions.rows import row


def wrong(task: str = "t", number: int = 1, **fields: object) -> AttemptRow:
    """Return a wrong attempt."""
    return row(task, number=number, verdict=Verdict.WRONG, **fields)


def drawn_side(
    draw: random.Random, difficulties: list[float], skill: float, gain: float
) -> Iterator[AttemptRow]:
    """Yield three attempts a task of an invented method; skill and gain are its own, difficulties are those of the tasks."""
    for place, difficulty in enumerate(difficulties):
        for number in range(1, 4):
            is_correct = draw.random() < 1 / (1 + math.exp(difficulty - skill))
            speedup = math.exp(draw.gauss(gain, 0.2))
            yield (
                row(f"t{place}", number=number, speedup=speedup) if is_correct else wrong(f"t{place}", number)
            )


def times_different(draws: int, tasks: int, *, skill: float = 0.0, gain: float = 0.0) -> int:
    """Return how many of so many drawn comparisons call the sides different; B has more skill and gain by so much."""
    draw, different = random.Random(7), 0
    for _ in range(draws):
        difficulties = [draw.gauss(0, 1.5) for _ in range(tasks)]
        first = [*drawn_side(draw, difficulties, -0.5, 0.3)]
        second = [*drawn_side(draw, difficulties, skill - 0.5, 0.3 + gain)]
        (comparison,) = compare_all((first, second), draws=100)
        made = (comparison.solved, comparison.speed)
        different += any(difference is not None and difference.is_proven for difference in made)
    return different


def test_equal_methods_are_rarely_called_different() -> None:
    assert times_different(60, tasks=24) <= 4


@pytest.mark.soak
@pytest.mark.parametrize("tasks", [6, 12, 24, 60])
def test_equal_methods_are_called_different_in_at_most_65_of_1000_draws(tasks: int) -> None:
    assert times_different(1000, tasks) <= 65


@pytest.mark.parametrize("planted", [{"skill": 3.0}, {"gain": 0.3}], ids=str)
def test_planted_difference_is_found(planted: dict[str, float]) -> None:
    assert times_different(20, tasks=36, **planted) >= 18


def test_exact_mcnemar_and_its_interval_agree() -> None:
    assert exact_mcnemar(0, 5) == 0.0625
    assert exact_mcnemar(1, 7) == pytest.approx(2 * 9 / 256)
    assert exact_mcnemar(0, 0) == exact_mcnemar(3, 3) == 1.0
    # Clopper and Pearson for 7 of 8: 0.4735 to 0.9968.
    assert discordant_interval(1, 7) == pytest.approx(
        (8 * (2 * 0.47349 - 1), 8 * (2 * 0.99684 - 1)), abs=1e-3
    )
    assert discordant_interval(0, 0) is None
    for first in range(12):
        for second in range(1, 12):
            low, high = discordant_interval(first, second)
            assert (exact_mcnemar(first, second) < 0.05) == (not low <= 0 <= high)


def test_sign_flips_list_all_patterns_and_agree_with_their_interval() -> None:
    assert sign_flips([0.1, 0.2, 0.3, 0.4, 0.5]) == (2 / 32, None), "five tasks prove nothing"
    assert sign_flips([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]).p == 2 / 64
    # By hand: 1, 2 and 3 change their signs in 8 patterns; |sum| is at least |1 + 2 - 3| = 0 in all, at least 4 in 4 of them.
    assert sign_flips([1.0, 2.0, -3.0]).p == 1.0
    assert sign_flips([-1.0, 2.0, 3.0]).p == 4 / 8


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=6, max_size=14), st.floats(0, 0.6)
)
def test_interval_of_sign_flips_excludes_0_exactly_if_p_is_small(logs: list[float], gain: float) -> None:
    flips = sign_flips([log + gain for log in logs], draws=300)
    low, high = flips.interval
    assert (flips.p <= 0.05) == (not low <= 0 <= high)
    assert low <= math.fsum(logs) / len(logs) + gain <= high


@pytest.mark.parametrize("tasks", [4, 11, 30])
def test_p_of_sign_flips_is_that_of_scipy(tasks: int) -> None:
    draw = random.Random(tasks)
    logs = [draw.gauss(0.1, 0.3) for _ in range(tasks)]
    test = permutation_test((logs,), fmean, permutation_type="samples", n_resamples=2048, vectorized=False)
    assert sign_flips(logs).p == pytest.approx(test.pvalue, abs=0 if tasks < 12 else 0.05)


def test_holm_keeps_the_order_of_the_tests() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([]) == []


def test_longer_chain_is_cut_where_the_shorter_ends() -> None:
    long = [wrong("t", 1), wrong("t", 2), wrong("t", 3), row("t", number=4, speedup=2.0)]
    (pair,) = pair_tasks(long, [wrong("t", 1), wrong("t", 2)], EqualCost.ATTEMPTS).pairs
    assert (pair.solved, pair.budget) == ((False, False), (2, 2))


def test_chain_that_stops_when_it_is_done_stays_solved() -> None:
    unsolved = [wrong("u", number) for number in range(1, 6)]
    quick = [row("t", speedup=1.2), *unsolved]
    slow = [wrong("t", 1), wrong("t", 2), row("t", number=3, speedup=2.0), *unsolved]
    pair, _ = pair_tasks(quick, slow, EqualCost.ATTEMPTS).pairs
    assert pair.solved == (True, True)
    assert pair.best[1] is None, "the kernel of attempt 3 was not made within one attempt"


def test_budget_in_tokens_counts_input_and_output() -> None:
    cheap = [wrong("t", number, input_tokens=80, output_tokens=20) for number in (1, 2)]
    costly = [
        wrong("t", 1, input_tokens=100, output_tokens=90),
        row("t", number=2, input_tokens=100, output_tokens=90),
    ]
    (pair,) = pair_tasks(cheap, costly, EqualCost.TOKENS).pairs
    assert (pair.budget, pair.solved) == ((200, 200), (False, False))
    assert pair_tasks(cheap, [wrong()], EqualCost.TOKENS).left_out == {
        "instance with an unknown number of tokens": 1,
        "instance that only one side has": 1,
    }


def test_rows_that_say_nothing_of_the_method_are_left_out() -> None:
    rows = [
        row("t", number=1, verdict=Verdict.INFRA_ERROR),
        wrong("t", 2),
        row("t", number=3, independent=False),
    ]
    paired = pair_tasks(rows, [wrong("t", 1), wrong("t", 2)], EqualCost.ATTEMPTS)
    assert paired.pairs[0].solved == (False, False)
    assert paired.left_out == {"our failure": 1, "instance that a person added": 1}


def test_kernel_that_failed_its_exam_gives_no_speedup() -> None:
    failed = row("t", speedup=9.0, confirmation=Confirmation.NOT_CONFIRMED)
    (pair,) = pair_tasks(
        [failed, row("t", number=2, speedup=2.0)], [wrong(), wrong(number=2)], EqualCost.ATTEMPTS
    ).pairs
    assert pair.best[0].speedup == 2.0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"provenance": ("H100", "", "570", "2.8", "3.5")}, "other hardware or software"),
        ({"against": "eager"}, "another baseline"),
    ],
)
def test_speedups_of_different_origin_are_not_compared(change: dict[str, object], reason: str) -> None:
    (pair,) = pair_tasks([row(speedup=2.0)], [row(speedup=3.0, **change)], EqualCost.ATTEMPTS).pairs
    assert (pair.apart, pair.log_ratio, pair.solved) == (reason, None, (True, True))
    (comparison,) = compare_all(([row(speedup=2.0)], [row(speedup=3.0, **change)]))
    assert comparison.speed is None


def test_pairs_have_equal_seed_and_method_where_both_sides_have_them() -> None:
    first = [
        row("t", seed=seed, session=f"{method}{seed}", method=method)
        for seed in (1, 2)
        for method in ("geak", "direct")
    ]
    second = [wrong("t", seed=seed, session=f"b{seed}", method="geak") for seed in (2, 3)]
    paired = pair_tasks(first, second, EqualCost.ATTEMPTS)
    assert [pair.instances for pair in paired.pairs] == [1], "geak with seed 2"
    assert paired.left_out == {"instance that only one side has": 4}
    second = [wrong("t", seed=9, session="c", method="reflexion")]
    (pair,) = pair_tasks(first[:1], second, EqualCost.ATTEMPTS).pairs
    assert pair.solved == (True, False), "the sides differ in method and seed"
    several = [*second, wrong("t", seed=2, session="d", method="agent")]
    assert not pair_tasks(first, several, EqualCost.ATTEMPTS).pairs, "no method is common"


def test_prompts_with_and_without_the_reference_are_never_pooled() -> None:
    shown = [row("t", reference_shown=True), row("u")]
    paired = pair_tasks(shown, [row("t"), row("u")], EqualCost.ATTEMPTS)
    assert [pair.task for pair in paired.pairs] == ["u"]
    assert paired.left_out == {"instance whose prompt quotes the reference on one side alone": 2}


def test_three_methods_are_corrected_for_all_tests() -> None:
    sides = [
        [row(f"t{n}", speedup=speedup, method=str(speedup)) for n in range(8)] for speedup in (1.0, 2.0, 2.5)
    ]
    compared = compare_all(sides)
    assert [round(comparison.speed.value, 2) for comparison in compared] == [2.0, 2.5, 1.25]
    assert {(comparison.comparisons, comparison.speed.p_corrected) for comparison in compared} == {
        (6, 6 * 2 / 256)
    }
