"""Compressed values of earlier attempts: every reader gets an equal value, and memory grows by a small row an attempt."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.generated_session.verdicts import correct, kernel, refused
from harness import Evaluation, Verdict
from sessions import SessionState, apply, fold
from sessions import events as ev
from sessions.journal.codec import decode, encode
from sessions.journal.compact import WINDOW, Compact, compact, compact_messages, expanded, held
from sessions.listing.description import summarise
from sessions.state.folding import apply_and_compact
from sessions.state.speed import attempt_speed
from tests.support.sessions import story

TASK = "starter/softmax"
KIB = 1 << 10


def chain(attempts: int) -> Iterator[ev.Event]:
    """Yield the events of an instance; each is decoded from its line, so that no two share a value."""
    for number in range(1, attempts + 1):
        name, call = f"softmax#1/{number}", f"softmax#1/{number}/optimizer/1"
        source = f"# {number}\n{kernel(TASK, number)}"
        prompt = (
            ev.Message("system", "You write kernels. " * 300),
            ev.Message("user", f"Improve it.\n{source}" * 5),
        )
        evaluation = correct(TASK, "0", 1.0 + number % 7 / 10, version=number)
        if number % 3 == 0:
            evaluation = refused(TASK, "0", Verdict.WRONG)
        for event in (
            ev.AttemptStarted(attempt=name, origin=ev.Origin.OPTIMIZE),
            ev.CallStarted(
                call=call, attempt=name, role=ev.Role.OPTIMIZER, model="test:model", messages=prompt
            ),
            ev.CallFinished(call=call, text=f"Faster.\n{source}", reasoning=f"Step {number}: rows. " * 500),
            ev.CandidateProposed(attempt=name, source=source),
            ev.AttemptJudged(attempt=name, evaluation=evaluation),
        ):
            decoded = decode(encode(event))
            assert isinstance(decoded, ev.Event)
            yield decoded


def compacted(events: list[ev.Event]) -> SessionState:
    state = SessionState()
    for event in events:
        apply_and_compact(state, event)  # type: ignore[arg-type]
    return state


def compact_attempts(state: SessionState) -> list[str]:
    return [
        attempt.attempt for attempt in state.attempts() if isinstance(held(attempt, "evaluation"), Compact)
    ]


def test_compacted_state_equals_the_fold() -> None:
    events = list(chain(12))
    whole, small = fold(events), compacted(events)  # type: ignore[arg-type]
    assert len(compact_attempts(small)) == 10
    assert small == whole
    assert repr(small) == repr(whole)
    assert summarise(small) == summarise(whole)
    for first, second in zip(small.attempts(), whole.attempts(), strict=True):
        assert (first.verdict, attempt_speed(first)) == (second.verdict, attempt_speed(second))
        assert first.calls[0].messages == second.calls[0].messages


def test_best_and_latest_attempt_stay_whole() -> None:
    state = compacted(list(chain(12)))
    best = state.instances["softmax#1"].best
    assert best is not None
    assert {best, "softmax#1/12"} == {attempt.attempt for attempt in state.attempts()} - {
        *compact_attempts(state)
    }


@given(st.integers(0, len(story.whole())))
def test_story_goes_on_after_compressing_at_any_event(cut: int) -> None:
    events = story.whole()
    state = fold(events[:cut])
    for attempt in state.attempts():
        attempt.compact(TASK)
    for event in events[cut:]:
        apply(state, event)
    assert state == fold(events)


def test_conversation_goes_on_from_a_compressed_call() -> None:
    events = list(chain(3))
    follow = ev.CallStarted(
        call="softmax#1/3/optimizer/2", attempt="softmax#1/3", role=ev.Role.OPTIMIZER, model="test:model",
        messages=(ev.Message("user", "And now?"),), continues="softmax#1/1/optimizer/1",
    )  # fmt: skip
    state = compacted([*events, follow])
    first = fold(events).attempt("softmax#1/1").calls[0]  # type: ignore[arg-type]
    assert state.attempt("softmax#1/3").calls[-1].messages == (*first.messages, *follow.messages)


def test_kept_speed_follows_a_new_evaluation() -> None:
    state = compacted(list(chain(4)))
    attempt = state.attempt("softmax#1/1")
    before = attempt_speed(attempt)
    attempt.evaluation = correct(TASK, "0", 3.0)
    after = attempt_speed(attempt)
    assert before is not None
    assert after is not None
    assert after.value > 2 * before.value


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("naïve kernel " * 40, str),
        (ev.Message("user", "x" * 500), ev.Message),
        (correct(TASK, "0", 1.7, bounded=True, throttled=True), Evaluation),
        (refused(TASK, "0", Verdict.WRONG), Evaluation),
    ],
)
def test_expanded_value_is_equal(value: object, kind: object) -> None:
    small = compact(value, kind, "a test")
    assert isinstance(small, Compact)
    assert expanded(small) == value
    assert compact(small, kind, "a test") is small


def test_long_value_keeps_no_more_of_the_first_than_zlib_uses() -> None:
    texts = [f"{number} " + "".join(map(str, range(40_000))) for number in range(2)]
    first, second = (compact(text, str, "long texts") for text in texts)
    assert isinstance(first, Compact)
    assert isinstance(second, Compact)
    assert second.first is first.first
    assert len(first.first) == WINDOW
    assert [expanded(first), expanded(second)] == texts


def test_value_that_cannot_be_encoded_stays_whole() -> None:
    garbled = "kernel \ud83d" * 40
    assert compact(garbled, str, "a test") is garbled


def test_system_messages_stay_shared() -> None:
    system = ev.Message("system", "You write kernels. " * 300)
    messages = compact_messages((system, ev.Message("user", "Improve it. " * 100)), TASK)
    assert messages[0] is system
    assert isinstance(messages[1], Compact)


def growth(take: object, few: int, many: int) -> float:
    """Return the bytes that each attempt between two numbers of attempts adds to a state."""
    traced = []
    for attempts in (few, many):
        state = SessionState()
        tracemalloc.start()
        for event in chain(attempts):
            take(state, event)  # type: ignore[operator]
        traced.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
    return (traced[1] - traced[0]) / (many - few)


def test_earlier_attempts_take_little_memory() -> None:
    compacted(list(chain(80)))  # so that later states find the first value of each kind
    assert growth(apply_and_compact, 40, 80) < 6 * KIB
    assert growth(apply, 40, 80) > 25 * KIB
