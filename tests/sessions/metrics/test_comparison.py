"""Comparison of two sides: equal budget, tests that keep their level, and figures from hand calculation."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

import pytest

from harness import Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.comparison import compare, discordant_interval, exact_mcnemar, holm, sign_flips
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
        first = drawn_side(draw, difficulties, -0.5, 0.3)
        second = drawn_side(draw, difficulties, skill - 0.5, 0.3 + gain)
        comparison = compare(first, second, draws=100)
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
    draw = random.Random(3)
    for tasks in (6, 9, 20):
        logs = [draw.gauss(0.2, 0.3) for _ in range(tasks)]
        flips = sign_flips(logs, draws=300)
        assert (flips.p <= 0.05) == (not flips.interval[0] <= 0 <= flips.interval[1])
        assert flips.interval[0] < math.fsum(logs) / tasks < flips.interval[1]


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
    assert compare([row(speedup=2.0)], [row(speedup=3.0, **change)]).speed is None
