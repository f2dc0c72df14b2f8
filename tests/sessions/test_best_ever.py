"""The best ever of a task: the fastest confirmed attempt of all sessions, else the fastest measured one."""

from __future__ import annotations

import msgspec
import pytest

from harness import Verdict
from harness.wire.results.provenance import Provenance
from sessions import Home, Recorder, fold, list_sessions
from sessions import events as ev
from sessions.best_ever import BestEver
from sessions.best_ever import bests_ever as bests_over
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


def bests_ever(home: Home) -> list[BestEver]:
    return bests_over(list_sessions(home))


def test_confirmed_attempt_comes_before_a_faster_unconfirmed_one(home: Home) -> None:
    record(home, FIRST, 1.5, confirmed=True)
    record(home, SECOND, 1.8)
    [best] = bests_ever(home)
    assert (best.session, best.measured.attempt, best.measured.confirmed) == (FIRST, "softmax#1/1", True)
    assert best.measured.speed.value == pytest.approx(1.5)
    assert best.measured.speed.low == pytest.approx(1.5 * 0.97, rel=0.01)


def test_of_sessions_that_tie_the_earlier_has_the_best(home: Home) -> None:
    record(home, FIRST, 1.5)
    record(home, SECOND, 1.504)
    assert [best.session for best in bests_ever(home)] == [FIRST]


def test_speedups_compare_only_on_the_same_device_product(home: Home) -> None:
    record(home, FIRST, 1.5, product="MI300X")
    record(home, SECOND, 1.2, product="H200 SXM")
    record(home, THIRD, 1.7, product="MI300X")
    assert [(best.session, best.measured.product) for best in bests_ever(home)] == [
        (THIRD, "MI300X"),
        (SECOND, "H200 SXM"),
    ]


def test_speedups_compare_only_with_the_same_driver(home: Home) -> None:
    record(home, FIRST, 1.5, product="MI300X", driver="6.12.12")
    record(home, SECOND, 1.2, product="MI300X", driver="6.14.0")
    assert {best.session for best in bests_ever(home)} == {FIRST, SECOND}


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
