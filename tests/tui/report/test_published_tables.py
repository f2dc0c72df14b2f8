"""Figures of GEAK's paper (arXiv 2507.23194) from outcomes with its counts, and rules that its tables should keep."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness import Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.formulas import mean_pass_at_k
from tests.support.sessions.rows import row
from tui.facts.report.tables import TABLES, RowSet


def outcomes(
    correct: int, *, called: int | None = None, mean: float = 1.0, tasks: int = 184
) -> list[AttemptRow]:
    """Rows of one attempt a task: a seeded choice of them is correct, with speedups of the given mean."""
    generator = random.Random(correct)
    names = [f"revised/{number}" for number in range(tasks)]
    solved = set(generator.sample(names, correct))
    spread = [generator.uniform(-0.5, 0.5) * mean for _ in range(correct)]
    speedups = iter([mean + value - fmean(spread) for value in spread])
    running = called or correct
    return [
        row(name, speedup=next(speedups))
        if name in solved
        else row(name, verdict=Verdict.WRONG if (running := running - 1) >= correct else Verdict.CALL_ERROR)
        for name in names
    ]


def overall(*rows: AttemptRow) -> dict[str, str]:
    """Return the row of the table `overall`, by the titles of its columns."""
    columns, (texts,) = TABLES["overall"](RowSet(rows)).printed()
    return dict(zip([column.title for column in columns], texts, strict=True))


@pytest.mark.parametrize(
    ("table", "tasks", "correct", "mean", "accuracy", "speedup"),
    [
        ("3, MI300", 184, 101, 2.59, "54.89", "2.59"),
        ("3, MI250", 184, 97, 2.42, "52.72", "2.42"),
        ("4, MI300", 30, 19, 0.92, "63.33", "0.92"),
        ("9, knowledge", 184, 37, 0.86, "20.11", "0.86"),
        ("9, and 1-shot", 184, 50, 0.99, "27.17", "0.99"),
        ("9, and optimizer", 184, 75, 1.45, "40.76", "1.45"),
    ],
)
def test_totals_of_geak_follow_from_their_counts(
    table: str, tasks: int, correct: int, mean: float, accuracy: str, speedup: str
) -> None:
    """A failed first attempt of each task changes nothing: the best row counts."""
    rows = outcomes(correct, mean=mean, tasks=tasks)
    first = [row(later.task, number=0, verdict=Verdict.CALL_ERROR) for later in rows]
    shown = overall(*first, *rows)
    assert (shown["exec"], shown["GEAK mean"]) == (f"{accuracy} %", f"{speedup}x")


def test_call_accuracy_of_geak_follows_from_its_counts() -> None:
    """Table 9: 27 of 184 run and 16 are correct without any module."""
    shown = overall(*outcomes(16, called=27))
    assert (shown["call"], shown["exec"]) == ("14.67 %", "8.70 %")


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=8))
@settings(max_examples=30)
def test_pass_at_k_never_falls_with_k_and_ends_at_the_solved_share(tasks: list[list[bool]]) -> None:
    """Table 6 of GEAK's paper falls once, and ends at 98 of 184 where table 3 has 97."""
    samples = [(len(instances), sum(instances)) for instances in tasks]
    shares = [mean_pass_at_k(samples, k) for k in range(1, 6)]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(fmean(map(any, tasks)))
