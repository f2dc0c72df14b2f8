"""The best ever of a task: the fastest confirmed attempt of all sessions, else the fastest measured one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from harness import Verdict
from harness.wire.results.provenance import Provenance
from sessions import Home, Recorder, fold, list_sessions
from sessions import events as ev
from sessions.best_ever import bests_ever
from sessions.state.bests import measured_bests
from tests.support.sessions import story

FIRST, SECOND, THIRD = (f"20250102-03040{number}-geak-ffff" for number in (1, 2, 3))


def record(
    home: Home, session: str, speedup: float, *, confirmed: bool = False, product: str = "", driver: str = ""
) -> None:
    """Record a stopped session with one attempt of this speedup."""
    provenance = Provenance(product=product, driver=driver)
    with Recorder.begin(home, story.started(session)) as recorder:
        for event in story.attempt("softmax#1/1", Verdict.CORRECT, speedup=speedup):
            if isinstance(event, ev.AttemptJudged):
                evaluation = msgspec.structs.replace(event.evaluation, provenance=provenance)
                event = msgspec.structs.replace(event, evaluation=evaluation)
            recorder.record(event)
        if confirmed:
            exam = msgspec.structs.replace(story.evaluation(Verdict.CORRECT, speedup=speedup), exam=True)
            exam = msgspec.structs.replace(exam, provenance=provenance)
            recorder.record(ev.WinnerExamined(attempt="softmax#1/1", evaluation=exam))
        recorder.record(ev.EngineStopped(reason="asked"))


@pytest.mark.parametrize(
    ("sessions", "best"),
    [
        pytest.param([{"speedup": 1.5, "confirmed": True}, {"speedup": 1.8}], [FIRST], id="confirmed"),
        pytest.param([{"speedup": 1.5}, {"speedup": 1.504}], [FIRST], id="tie"),
        pytest.param(
            [
                {"speedup": 1.5, "product": "MI300X"},
                {"speedup": 1.2, "product": "H200 SXM"},
                {"speedup": 1.7, "product": "MI300X"},
            ],
            [THIRD, SECOND],
            id="product",
        ),
        pytest.param(
            [{"speedup": 1.5, "driver": "6.12.12"}, {"speedup": 1.2, "driver": "6.14.0"}],
            [FIRST, SECOND],
            id="driver",
        ),
    ],
)
def test_best_is_of_one_product_and_driver_and_confirmed_before_faster(
    home: Home, sessions: list[dict[str, Any]], best: list[str]
) -> None:
    for name, facts in zip((FIRST, SECOND, THIRD), sessions, strict=False):
        record(home, name, **facts)
    assert [found.session for found in bests_ever(list_sessions(home))] == best


def test_rejected_and_failed_attempts_are_no_best() -> None:
    state = fold([story.started(), *story.attempt("softmax#1/1", Verdict.CORRECT, speedup=2.0)])
    assert [measured.attempt for measured in measured_bests(state)] == ["softmax#1/1"]
    for event in story.exam("softmax#1/1", Verdict.WRONG):
        rejected = fold([story.started(), *story.attempt("softmax#1/1", Verdict.CORRECT, speedup=2.0), event])
    assert measured_bests(rejected) == ()
    decision = ev.DecisionMade(attempt="softmax#1/1", accepted=False)
    assert not measured_bests(
        fold([story.started(), *story.attempt("softmax#1/1", Verdict.CORRECT, speedup=2.0), decision])
    )
