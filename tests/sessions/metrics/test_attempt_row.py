"""Rows of a session: what they say of each judged attempt, and that they have the session's winners."""

from __future__ import annotations

import msgspec
import pytest

from harness import Verdict
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from sessions.metrics.attempt_row import AttemptRow, attempt_rows
from sessions.state.folding import fold
from tests.support.sessions import story


@pytest.fixture(scope="module")
def rows() -> list[AttemptRow]:
    return list(attempt_rows(fold([story.started(), *story.after_start()])))


def test_each_judged_attempt_has_a_row_by_instance_and_number(rows: list[AttemptRow]) -> None:
    first = [(row.attempt, row.verdict, row.found) for row in rows if row.instance == 1]
    assert first == [
        ("softmax#1/1", Verdict.WRONG, None),
        ("softmax#1/2", Verdict.CORRECT, pytest.approx(1.2)),
        ("softmax#1/3", Verdict.CORRECT, pytest.approx(1.42)),
    ]
    assert {(row.task, row.suite, row.method, row.independent) for row in rows} == {
        ("starter/softmax", "starter", "geak", True)
    }


def test_weak_oracle_and_provenance_of_an_evaluation_are_in_its_row() -> None:
    judged = msgspec.structs.replace(
        story.evaluation(Verdict.CORRECT, speedup=2.0),
        provenance=Provenance(product="MI300X", driver="6.4"),
        weak_oracle="case small: accepts zeros",
    )
    state = fold(
        [
            story.started(),
            ev.InstanceStarted(task="starter/softmax", instance=1),
            ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH),
            ev.AttemptJudged(attempt="softmax#1/1", evaluation=judged),
        ]
    )
    (row,) = attempt_rows(state)
    assert row.weak_oracle == "case small: accepts zeros"
    assert row.provenance == ("MI300X", "", "6.4", "", "")
