"""Accuracies, pass@k, and the selection of rows, against their definitions."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Verdict
from sessions.metrics import selection
from sessions.metrics.accuracy import mean_pass_at_k, pass_at_k, share
from tests.support.sessions.rows import row

VERDICTS = [Verdict.CORRECT, Verdict.CORRECT, Verdict.WRONG, Verdict.CALL_ERROR, Verdict.INFRA_ERROR]
MIXED = [row(number=number, verdict=verdict) for number, verdict in enumerate(VERDICTS, 1)]


@given(st.integers(1, 7), st.data())
@settings(max_examples=30)
def test_pass_at_k_is_the_share_of_draws_with_a_correct_sample(samples: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, samples))
    k = data.draw(st.integers(1, samples))
    outcomes = [True] * correct + [False] * (samples - correct)
    draws = list(itertools.combinations(outcomes, k))
    assert pass_at_k(samples, correct, k) == pytest.approx(sum(map(any, draws)) / len(draws))


@pytest.mark.parametrize(("samples", "correct", "k"), [(3, 1, 4), (3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_pass_at_k_of_impossible_counts_is_an_error(samples: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="does not exist"):
        pass_at_k(samples, correct, k)


def test_mean_pass_at_k_needs_enough_samples_of_every_task() -> None:
    assert mean_pass_at_k([(4, 4), (4, 0)], 2) == 0.5
    assert mean_pass_at_k([(4, 4), (1, 1)], 2) is None
    assert mean_pass_at_k([], 1) is None


def test_share_of_nothing_is_unknown() -> None:
    assert share([True, False, False, True]) == 0.5
    assert share([]) is None


def test_rows_that_are_left_out_are_counted_by_reason() -> None:
    rows = [
        *MIXED,
        row(verdict=Verdict.UNSUPPORTED),
        row(weak_oracle="case 1: accepts zeros"),
        row(origin="human"),
    ]
    kept, left_out = selection.counted_rows(rows)
    assert list(kept) == MIXED[:4]
    assert left_out == {"our failure": 1, "unsupported": 1, "weak oracle": 1, "kernel of a person": 1}
