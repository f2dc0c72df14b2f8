"""Cost of a solved task; selection bias and repair bias on planted rows."""

from __future__ import annotations

import pytest

from harness import Verdict
from sessions.metrics.bias import repair_bias, rounds, selection_bias
from sessions.metrics.cost import solved_task_cost
from sessions.state.state import Confirmation
from tests.support.sessions.rows import row

WRONG = Verdict.WRONG


def test_solved_task_pays_for_the_failed_and_uncounted_attempts_of_all_tasks() -> None:
    spent = {"input_tokens": 100, "output_tokens": 10, "cost_usd": 0.5, "device_s": 2.0, "wall_s": 4.0}
    rows = [row("a/x", **spent), row("a/y", verdict=WRONG, **spent), row("a/z", **spent)]
    uncounted = row("a/v", verdict=Verdict.INFRA_ERROR, **spent)
    cost = solved_task_cost([*rows, uncounted, row("a/x", number=2, independent=False)])
    assert (cost.tasks, cost.solved, cost.attempts) == (3, 2, 2.0)
    assert (cost.input_tokens, cost.output_tokens, cost.cost_usd) == (200, 20, 1.0)
    assert (cost.device_s, cost.wall_s) == (4.0, 8.0)
    assert solved_task_cost([*rows, row("a/x")]).cost_usd is None, "the price of one attempt is unknown"
    assert solved_task_cost(rows[1:2]).cost_usd is None, "nothing is solved"


def test_selection_bias_compares_found_with_confirmed_speeds_of_the_same_kernels() -> None:
    rows = [
        row("a/x", found=2.0, confirmed=1.6, confirmation=Confirmation.CONFIRMED),
        row("a/y", found=1.25, confirmed=1.25, confirmation=Confirmation.CONFIRMED),
        row("a/z", found=9.0, confirmation=Confirmation.NOT_CONFIRMED),
        row("a/v", found=9.0),
    ]
    bias = selection_bias(rows)
    assert (bias.timed_again, bias.not_confirmed) == (2, 1)
    assert bias.excess == pytest.approx((2.0 / 1.6) ** 0.5 - 1)
    assert selection_bias(rows[3:]).excess is None


def test_rescued_instances_are_those_that_began_with_a_failure() -> None:
    rows = [
        row("a/x", number=1, speedup=1.0),
        row("a/x", number=2, speedup=4.0),
        row("a/y", number=1, verdict=Verdict.INFRA_ERROR),
        row("a/y", number=2, verdict=WRONG),
        row("a/y", number=3, speedup=2.0),
        row("a/z", verdict=WRONG),
    ]
    bias = repair_bias(rows)
    assert (bias.started_correct.kernels, bias.started_correct.geomean) == (1, pytest.approx(4.0))
    assert (bias.rescued.kernels, bias.rescued.geomean) == (1, pytest.approx(2.0))


def test_rounds_separate_rescued_from_persistent_kernels() -> None:
    rows = [
        row("a/x", number=1, speedup=1.5),
        row("a/x", number=2, speedup=1.7),
        row("a/y", number=1, verdict=WRONG),
        row("a/y", number=2, speedup=1.1),
        row("a/z", number=1, verdict=Verdict.CALL_ERROR),
        row("a/z", number=2, verdict=Verdict.CALL_ERROR),
    ]
    first, second = rounds(rows)
    assert (first.iteration, first.attempts, first.called) == (1, 3, 2)
    assert (first.correct.kernels, first.persistent.kernels, first.rescued.kernels) == (1, 0, 0)
    assert second.correct.mean == pytest.approx(1.4)
    assert second.persistent.mean == pytest.approx(1.7)
    assert second.rescued.mean == pytest.approx(1.1)
