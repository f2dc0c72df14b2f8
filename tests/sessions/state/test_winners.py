"""Winners: an exam decides which attempt is best and confirmed, and changes no verdict."""

from __future__ import annotations

import msgspec
import pytest

from harness import ErrorReport, Verdict
from sessions import SessionState, apply, fold
from sessions import events as ev
from sessions.listing.description import summarise
from sessions.state.ranking import rank
from sessions.state.state import Confirmation
from sessions.state.winners import best_of, contenders, place
from tests.support.sessions import story


def state_of(*verdicts: tuple[Verdict, float | None]) -> SessionState:
    """Return the state of one instance with these verdicts and speedups."""
    events: list[ev.Event] = [story.started()]
    for number, (verdict, speedup) in enumerate(verdicts, start=1):
        events += story.attempt(f"softmax#1/{number}", verdict, speedup=speedup)
    return fold(events)  # type: ignore[arg-type]


def examine(state: SessionState, attempt: str, verdict: Verdict) -> None:
    for event in story.exam(attempt, verdict):
        apply(state, event)  # type: ignore[arg-type]


def test_exam_order_is_by_rank_without_failed_and_rejected_attempts() -> None:
    state = state_of(
        (Verdict.CORRECT, 1.0),
        (Verdict.WRONG, None),
        (Verdict.CORRECT, 3.0),
        (Verdict.CORRECT, 3.0),
        (Verdict.CORRECT, 2.0),
    )
    apply(state, ev.DecisionMade(attempt="softmax#1/5", accepted=False))
    names = [attempt.attempt for attempt in contenders(state.attempts())]
    assert names == ["softmax#1/3", "softmax#1/4", "softmax#1/1"]


def test_attempt_with_a_failed_exam_ranks_after_other_correct_attempts() -> None:
    state = state_of((Verdict.WRONG, None), (Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    instance = state.instances["softmax#1"]
    assert instance.best == "softmax#1/3"
    examine(state, "softmax#1/3", Verdict.WRONG)
    assert instance.best == "softmax#1/2"
    assert state.attempt("softmax#1/3").verdict is Verdict.CORRECT, (
        "an exam does not change the verdict of the open cases"
    )
    examine(state, "softmax#1/2", Verdict.REJECTED)
    assert instance.best == "softmax#1/3", "the best attempt with a failed exam ranks before wrong attempts"
    assert state.attempt("softmax#1/3").confirmation is Confirmation.NOT_CONFIRMED


@pytest.mark.parametrize("verdict", [Verdict.UNSUPPORTED, Verdict.INFRA_ERROR, Verdict.CANCELLED])
def test_exam_without_a_verdict_does_not_count(verdict: Verdict) -> None:
    state = state_of((Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    failed = story.evaluation(verdict)
    exam = msgspec.structs.replace(failed, exam=True, error=ErrorReport("infra", "a worker died"))
    apply(state, ev.WinnerExamined(attempt="softmax#1/2", evaluation=exam))
    winner = state.attempt("softmax#1/2")
    assert winner.confirmation is Confirmation.NOT_EXAMINED
    assert winner.unexamined_because == "a worker died"
    assert state.instances["softmax#1"].best == "softmax#1/2"


def test_open_cases_do_not_confirm_an_attempt() -> None:
    state = state_of((Verdict.CORRECT, 1.0))
    winner = state.attempt("softmax#1/1")
    assert winner.confirmation is Confirmation.NOT_EXAMINED
    assert winner.unexamined_because == ""
    open_cases = story.evaluation(Verdict.CORRECT)
    apply(state, ev.WinnerExamined(attempt="softmax#1/1", evaluation=open_cases))
    assert winner.confirmation is Confirmation.NOT_EXAMINED


def test_running_exam_is_shown_and_keeps_the_stages() -> None:
    state = state_of((Verdict.CORRECT, 1.0))
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


def test_summary_lists_confirmed_tasks_or_none_without_exams() -> None:
    state = state_of((Verdict.CORRECT, 1.0), (Verdict.CORRECT, 2.0))
    assert summarise(state).confirmed is None
    examine(state, "softmax#1/2", Verdict.WRONG)
    assert (summarise(state).confirmed, summarise(state).solved) == ((), ("starter/softmax",))
    assert summarise(state).best == {"starter/softmax": "softmax#1/1"}
    examine(state, "softmax#1/1", Verdict.CORRECT)
    assert summarise(state).confirmed == ("starter/softmax",)


def test_unjudged_attempt_has_no_place() -> None:
    state = fold([story.started(), ev.AttemptStarted(attempt="softmax#1/1", origin=ev.Origin.FRESH)])
    assert best_of(state.attempts()) is None
    with pytest.raises(ValueError, match="not judged"):
        place(state.attempt("softmax#1/1"))


def test_speedup_of_the_exam_replaces_the_first_speedup() -> None:
    state = state_of((Verdict.CORRECT, 1.38), (Verdict.CORRECT, 1.42))
    exam = msgspec.structs.replace(story.evaluation(Verdict.CORRECT, speedup=1.31), exam=True)
    apply(state, ev.WinnerExamined(attempt="softmax#1/2", evaluation=exam))
    winner = state.attempt("softmax#1/2")
    found, confirmed = winner.found_speed, winner.speed
    assert (found.figure, confirmed.figure) == ("1.42x", "1.31x")
    assert best_of(state.attempts()) is winner
    assert place(winner)[1].speedup == rank(exam).speedup
    assert summarise(state).speeds == {"starter/softmax": confirmed}
    assert state.attempt("softmax#1/1").found_speed is None, "it was not timed again"


def test_speedup_of_a_failed_exam_does_not_count() -> None:
    state = state_of((Verdict.CORRECT, 1.42))
    exam = msgspec.structs.replace(story.evaluation(Verdict.WRONG, speedup=1.4), exam=True)
    apply(state, ev.WinnerExamined(attempt="softmax#1/1", evaluation=exam))
    speed = state.attempt("softmax#1/1").speed
    assert speed.figure == "1.42x"
