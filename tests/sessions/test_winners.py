"""The exam's place: it decides what is held up as the best and is called confirmed, and changes no verdict."""

from __future__ import annotations

import msgspec
import pytest

from harness import ErrorReport, Evaluation, Latency, Verdict
from sessions import SessionState, apply, fold
from sessions import events as ev
from sessions.description import summarise
from sessions.state import Confirmation
from sessions.winners import best_of, contenders, place
from tests.sessions import story


def told(*verdicts: tuple[Verdict, float | None]) -> SessionState:
    """One instance with these verdicts and speedups."""
    events: list[ev.Event] = [story.started()]
    for number, (verdict, speedup) in enumerate(verdicts, start=1):
        events += story.attempt(f"softmax#1/{number}", verdict, speedup=speedup)
    return fold(events)  # type: ignore[arg-type]


def examine(state: SessionState, attempt: str, verdict: Verdict) -> None:
    for event in story.exam(attempt, verdict):
        apply(state, event)  # type: ignore[arg-type]


def test_the_exams_order_is_by_rank_without_failed_and_rejected_ones() -> None:
    state = told(
        (Verdict.CORRECT, 1.0),
        (Verdict.WRONG, None),
        (Verdict.CORRECT, 3.0),
        (Verdict.CORRECT, 3.0),
        (Verdict.CORRECT, 2.0),
    )
    apply(state, ev.DecisionMade(attempt="softmax#1/5", accepted=False))
    names = [attempt.attempt for attempt in contenders(state.attempts())]
    assert names == ["softmax#1/3", "softmax#1/4", "softmax#1/1"]


def test_what_failed_the_exam_comes_after_every_other_correct_one() -> None:
    state = told((Verdict.WRONG, None), (Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    instance = state.instances["softmax#1"]
    assert instance.best == "softmax#1/3"
    examine(state, "softmax#1/3", Verdict.WRONG)
    assert instance.best == "softmax#1/2"
    assert state.attempt("softmax#1/3").verdict is Verdict.CORRECT, "its verdict is that of the open cases"
    examine(state, "softmax#1/2", Verdict.REJECTED)
    assert instance.best == "softmax#1/3", "of those that failed the exam the best, before what is wrong"
    assert state.attempt("softmax#1/3").confirmation is Confirmation.NOT_CONFIRMED


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.INFRA_ERROR, Verdict.CANCELLED])
def test_an_exam_without_a_verdict_on_the_candidate_is_none(verdict: Verdict) -> None:
    state = told((Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    failed = story.evaluation(verdict)
    exam = msgspec.structs.replace(failed, exam=True, error=ErrorReport("infra", "a worker died"))
    apply(state, ev.WinnerExamined(attempt="softmax#1/2", evaluation=exam))
    winner = state.attempt("softmax#1/2")
    assert winner.confirmation is Confirmation.NOT_EXAMINED
    assert winner.unexamined_because == "a worker died"
    assert state.instances["softmax#1"].best == "softmax#1/2"


def test_the_open_cases_alone_confirm_nothing() -> None:
    state = told((Verdict.CORRECT, 1.0))
    winner = state.attempt("softmax#1/1")
    assert winner.confirmation is Confirmation.NOT_EXAMINED
    assert winner.unexamined_because == ""
    open_cases = story.evaluation(Verdict.CORRECT)
    apply(state, ev.WinnerExamined(attempt="softmax#1/1", evaluation=open_cases))
    assert winner.confirmation is Confirmation.NOT_EXAMINED


def test_an_exam_under_way_is_seen_and_leaves_the_verdicts_stages() -> None:
    state = told((Verdict.CORRECT, 1.0))
    winner, instance = state.attempt("softmax#1/1"), state.instances["softmax#1"]
    before = list(winner.stages)
    apply(state, ev.StageStarted(attempt="softmax#1/1", stage="execution", device="cpu", exam=True))
    assert (instance.word, winner.examining, winner.stage, winner.stages) == (
        "exam",
        "execution",
        None,
        before,
    )
    apply(state, ev.EngineStarted(host="node", pid=2, resumed=True))
    assert (instance.word, winner.examining) == ("wait", None)


def test_summaries_count_tasks_with_a_confirmed_attempt_and_know_when_nothing_was_examined() -> None:
    state = told((Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    assert summarise(state).confirmed is None
    examine(state, "softmax#1/2", Verdict.WRONG)
    assert (summarise(state).confirmed, summarise(state).solved) == ((), ("starter/softmax",))
    assert summarise(state).best == {"starter/softmax": "softmax#1/1"}
    examine(state, "softmax#1/1", Verdict.CORRECT)
    assert summarise(state).confirmed == ("starter/softmax",)


def test_nothing_judged_has_no_place() -> None:
    state = fold([story.started(), ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH)])
    assert best_of(state.attempts()) is None
    with pytest.raises(ValueError, match="not judged"):
        place(state.attempt("softmax#1/1"))


def test_a_speedup_that_the_exam_timed_again_counts_and_does_not_yield_to_one_that_was_only_found() -> None:
    state = told((Verdict.CORRECT, 1.38), (Verdict.CORRECT, 1.42))
    exam = msgspec.structs.replace(story.evaluation(Verdict.CORRECT, speedup=1.31), exam=True)
    apply(state, ev.WinnerExamined(attempt="softmax#1/2", evaluation=exam))
    winner = state.attempt("softmax#1/2")
    assert (winner.evaluation.speedup, winner.speedup_confirmed, winner.speedup) == (1.42, 1.31, 1.31)  # type: ignore[union-attr]
    assert best_of(state.attempts()) is winner
    assert place(winner)[1].speedup == 1.31
    assert summarise(state).speedups == {"starter/softmax": 1.31}
    assert state.attempt("softmax#1/1").speedup == 1.38, "what nobody timed again is as it was found"


def test_a_speedup_of_a_failed_exam_confirms_nothing() -> None:
    state = told((Verdict.CORRECT, 1.42))
    exam = msgspec.structs.replace(story.evaluation(Verdict.WRONG, speedup=1.4), exam=True)
    apply(state, ev.WinnerExamined(attempt="softmax#1/1", evaluation=exam))
    assert state.attempt("softmax#1/1").speedup_confirmed is None


def timed(speedup: float | None, **by_case: float | None) -> Evaluation:
    latency = tuple(
        Latency("0", case, ratio or 1.0, 1.0, ratio, None, "graph") for case, ratio in by_case.items()
    )
    return msgspec.structs.replace(story.evaluation(Verdict.CORRECT, speedup=speedup), latency=latency)


@pytest.mark.parametrize(
    ("found", "again", "compared"),
    [
        (timed(2.0, a=1.0, b=3.0), timed(1.5, a=1.0, b=2.0), (2.0, 1.5, None)),
        (timed(5.56, a=1.0, b=10.12), timed(10.0, a=None, b=10.0), (10.12, 10.0, 1)),
        (timed(10.0, a=None, b=10.0), timed(5.5, a=1.0, b=10.0), (10.0, 10.0, 1)),
        (timed(4.0, a=4.0, b=None), timed(3.0, a=None, b=3.0), (None, 3.0, None)),
        (timed(2.0), timed(1.5), (2.0, 1.5, None)),
        (timed(None, a=3.0), timed(1.5, a=1.0, b=2.0), (None, 1.5, None)),
        (timed(2.0, a=1.0, b=3.0), timed(None, b=7.9), None),
    ],
    ids=[
        "same",
        "short again",
        "short before",
        "nothing in common",
        "no cases",
        "found in part",
        "again in part",
    ],
)
def test_what_was_found_is_compared_with_what_was_confirmed_over_the_same_cases(
    found: Evaluation, again: Evaluation, compared: tuple[float | None, float, int | None] | None
) -> None:
    state = told((Verdict.CORRECT, None))
    attempt = state.attempt("softmax#1/1")
    attempt.evaluation = found
    exam = msgspec.structs.replace(again, exam=True)
    apply(state, ev.WinnerExamined(attempt="softmax#1/1", evaluation=exam))
    assert attempt.timed_twice == (None if compared is None else pytest.approx(compared))
