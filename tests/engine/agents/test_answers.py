"""The answers that an agent gets, from the events of its session."""

from __future__ import annotations

import re

import msgspec
import pytest

from engine.agents.answers import best_answer, encoded, verdict_answer
from harness import Evaluation
from sessions import SessionState, fold
from sessions import events as ev
from tests.support.sessions import journals, story

ATTEMPTS = FORMER, BEST = "softmax#1/1", "softmax#1/2"


def session_of(*evaluations: Evaluation) -> SessionState:
    """Return a session whose attempts have these evaluations."""
    events: list[ev.Event] = [
        story.started(method="agent", instances=1),
        ev.InstanceStarted(task="starter/softmax", instance=1),
    ]
    for name, evaluation in zip(ATTEMPTS, evaluations, strict=False):
        events += [
            ev.AttemptStarted(attempt=name, origin=ev.Origin.FRESH),
            ev.CandidateProposed(attempt=name, source=f"# {name}\n"),
            ev.AttemptJudged(attempt=name, evaluation=evaluation),
        ]
    return fold(story.numbered(events))  # type: ignore[arg-type]


def timed(**speedups: float) -> Evaluation:
    """Return the evaluation of a correct candidate with these speedups by case."""
    rows = tuple(
        msgspec.structs.replace(row, case=case, candidate_ms=row.baseline_ms / speedup, speedup=speedup)
        for case, speedup in speedups.items()
        for row in journals.latencies()[:1]
    )
    return journals.correct(speed=rows)


def test_best_attempt_is_told_with_the_cases_where_another_is_faster() -> None:
    best = timed(fp32=1.5, fp16=0.9)
    assert best_answer(session_of(best), "softmax#1").faster_elsewhere == {}
    answer = best_answer(session_of(timed(fp32=1.0, fp16=1.0), best), "softmax#1")
    assert (answer.attempt, answer.code) == (BEST, f"# {BEST}\n")
    assert answer.faster_elsewhere == {"fp16": f"1.00x in {FORMER}"}


@pytest.mark.parametrize("speed", [journals.latencies(), ()], ids=["timed", "not timed"])
def test_answer_about_a_correct_attempt_is_short(speed: tuple[object, ...]) -> None:
    evaluation = journals.correct(speed=speed) if speed else journals.correct(waste=1.23456789)
    state = session_of(evaluation)
    answer = verdict_answer(state, "softmax#1", FORMER, next_step="submit", person=(), is_brief=True)
    text = encoded(answer)
    assert len(text) < 1500
    assert re.search(r"\d\.\d{5}", text) is None
