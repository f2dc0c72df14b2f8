"""History of an instance: ascending order, limited size, the best attempt always kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.methods.history import History
from engine.methods.progress import Progress
from engine.prompting.judged import JudgedCandidate
from sessions.events import Orders
from tests.support.judge.evaluations import correct
from tests.support.judge.judged_attempts import judged_attempt


def ancestor(number: int, speedup: float | None) -> JudgedCandidate:
    return JudgedCandidate(
        judged_attempt(correct(speedup=speedup), f"softmax#1/{number}", f"source {number}")
    )


def attempts(history: History) -> list[int]:
    return [int(ancestor.attempt.rpartition("/")[2]) for ancestor in history]


@given(st.lists(st.integers(-100, 100), max_size=30))
def test_history_keeps_the_best_in_ascending_order(steps: list[int]) -> None:
    """Speedups differ by 3 % or not at all: within 1 % attempts tie."""
    speedups = [1.03**step for step in steps]
    history = History(5)
    for number, speedup in enumerate(speedups):
        was_best = history.add(ancestor(number, speedup))
        best = history.best
        assert best.evaluation.speedup == max(speedups[: number + 1])
        assert was_best == (speedup > max(speedups[:number], default=0.0))
    kept = [ancestor.evaluation.speedup for ancestor in history]
    assert kept == sorted(speedups)[-5:]


@pytest.mark.parametrize("speedup", [1.5, 1.501])
def test_older_attempt_stays_best_within_one_percent(speedup: float) -> None:
    history = History()
    assert history.add(ancestor(1, 1.5)) is True
    assert history.add(ancestor(2, speedup)) is False
    assert attempts(history) == [2, 1]


def test_same_source_is_kept_once() -> None:
    history = History()
    history.add(ancestor(1, 1.0))
    assert (
        history.add(JudgedCandidate(judged_attempt(correct(speedup=1.1), "softmax#1/2", "source 1"))) is False
    )
    assert attempts(history) == [1]


def test_fewer_requested_bytes_rank_higher_without_timing() -> None:
    history = History()
    history.add(JudgedCandidate(judged_attempt(correct(requested_bytes=4000), "softmax#1/1", "a")))
    assert (
        history.add(JudgedCandidate(judged_attempt(correct(requested_bytes=2000), "softmax#1/2", "b")))
        is True
    )
    assert attempts(history) == [1, 2]


def test_person_can_pin_an_early_candidate() -> None:
    progress = Progress()
    for number in range(1, 10):
        progress.passed(ancestor(number, 1.0 + number / 10))
        progress.next_step()
    progress.obey(Orders(pinned="softmax#1/1"))
    base = progress.next_step().base
    assert base is not None
    assert base.evaluation == correct(speedup=1.1)
    assert base.rank < progress.history.best.rank
