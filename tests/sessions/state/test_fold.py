"""Fold of events to a session's state: equal from any cut, and robust against lost or shuffled lines."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import Verdict
from sessions import SessionState, apply, fold
from sessions import events as ev
from sessions.journal.codec import BadLine, UnknownEvent
from tests.support.sessions import story

WHOLE = story.whole()


@given(st.integers(0, len(WHOLE)))
def test_fold_in_two_parts_equals_fold_of_the_whole(cut: int) -> None:
    state = fold(WHOLE[:cut])
    repr(state)  # a read between events joins the text pieces; the result must not change
    for event in WHOLE[cut:]:
        apply(state, event)
    assert state == fold(WHOLE)


@given(st.randoms(use_true_random=False), st.sets(st.integers(0, len(WHOLE) - 1)))
def test_fold_of_lost_or_shuffled_events_keeps_every_attempt(chance: random.Random, lost: set[int]) -> None:
    remaining = [event for index, event in enumerate(WHOLE) if index not in lost]
    chance.shuffle(remaining)
    state = fold(remaining)
    judged = {event.attempt for event in remaining if isinstance(event, ev.AttemptJudged)}
    assert judged <= {attempt.attempt for attempt in state.attempts()}
    assert {attempt.attempt for attempt in state.attempts() if attempt.evaluation} == judged
    finished = sum(isinstance(event, ev.CallFinished) for event in remaining)
    assert state.input_tokens == 100 * finished


def test_fold_of_a_whole_session() -> None:
    state = fold(WHOLE)
    assert list(state.instances) == ["softmax#1", "softmax#2"]
    instance = state.instances["softmax#1"]
    assert (instance.word, instance.finished, instance.best, instance.solved) == (
        "done",
        "iterations",
        "softmax#1/3",
        True,
    )
    first = state.attempt("softmax#1/1")
    assert first.verdict is Verdict.WRONG
    assert [call.call for call in first.calls] == ["softmax#1/1/generator/1", "softmax#1/1/reflector/1"]
    assert first.calls[0].text.startswith("```python")
    assert first.calls[0].retries == 1
    assert first.source in first.calls[0].text
    assert first.usage == ev.Usage(200, 40, 100)
    assert (state.input_tokens, state.output_tokens) == (800, 160)
    assert (state.cost_usd, state.unpriced_calls) == (0.5, 6)
    assert state.finished
    assert ("info", "half-way") in state.notices
    assert state.devices["cpu"].utilisation == 0.5
    assert state.last_seq == len(WHOLE)
    assert state.skipped_events == 0


def test_instance_has_one_word_for_its_current_work() -> None:
    words = []
    state = SessionState()
    for event in story.numbered([story.started(), *story.instance(1)]):
        apply(state, event)
        word = state.instances["softmax#1"].word if state.instances else ""
        if not words or words[-1] != word:
            words.append(word)
    judging = ["static", "call", "compile", "execution"]
    well = [*judging, "integrity", "wait"]
    assert words == [
        "", "wait", "generate", "wait", *judging, "wait", "reflect", "wait", "generate", "wait", *well,
        "optimize", "wait", *well, "exam", "wait", "done",
    ]  # fmt: skip


def interleaved(count: int) -> list[ev.Event]:
    """Return events of `count` parallel attempts of one instance, interleaved; odd attempts fail."""
    lanes = [
        list(story.attempt(f"softmax#1/{n}", Verdict.WRONG if n % 2 else Verdict.CORRECT))
        for n in range(1, count + 1)
    ]
    turns = [lane[turn] for turn in range(max(map(len, lanes))) for lane in lanes if turn < len(lane)]
    return story.numbered([story.started(), ev.InstanceStarted(task="starter/softmax", instance=1), *turns])


def test_parallel_attempts_do_not_affect_each_other() -> None:
    at_once = fold(interleaved(4)).instances["softmax#1"]
    for attempt in at_once.attempts:
        verdict = Verdict.WRONG if attempt.number % 2 else Verdict.CORRECT
        alone = fold(story.numbered(list(story.attempt(attempt.attempt, verdict))))
        expected = alone.attempt(attempt.attempt)
        for name in ("source", "stages", "evaluation", "word"):
            assert getattr(attempt, name) == getattr(expected, name), name
        assert [call.text for call in attempt.calls] == [call.text for call in expected.calls]
    assert at_once.word == "wait"
    assert at_once.best == "softmax#1/2"


def test_apply_returns_the_changed_keys() -> None:
    state = SessionState()
    assert apply(state, story.started()) == {"session"}
    assert apply(state, ev.InstanceStarted(task="starter/softmax", instance=2)) == {"softmax#2"}
    assert apply(state, ev.InstanceStarted(task="other/softmax", instance=2)) == {"other/softmax#2"}
    assert apply(state, ev.ReplyPiece(call="softmax#2/1/generator/1", kind="text", text="x")) == {"softmax#2"}
    assert apply(state, ev.CallFinished(call="softmax#2/1/generator/1", text="x")) == {"softmax#2", "session"}
    assert apply(state, ev.DeviceSampled(device="cpu", description="")) == {"device:cpu"}
    assert apply(state, UnknownEvent("later", 9, 0.0)) == {"session"}
    assert apply(state, BadLine("cut")) == {"session"}
    assert state.skipped_events == 2


def test_awaited_device_stays_awaited_until_a_stage_starts() -> None:
    state = fold([story.started(), ev.InstanceStarted(task="starter/softmax", instance=1)])
    assert apply(state, ev.DeviceAwaited(device="0", holders=("a process of ada",))) == {"device:0"}
    apply(state, ev.DeviceSampled(device="0", description="MI300X"))
    assert state.devices["0"].waits_for == ("a process of ada",)
    changed = apply(state, ev.StageStarted(attempt="softmax#1/1", stage="call", device="0"))
    assert changed == {"device:0", "softmax#1"}
    assert state.devices["0"].waits_for == ()


def test_quarantine_of_a_device_ends_with_the_next_engine() -> None:
    state = fold([story.started()])
    assert apply(state, ev.DeviceQuarantined(device="0", why="no answer")) == {"device:0", "session"}
    apply(state, ev.DeviceSampled(device="0", description="MI300X"))
    assert state.devices["0"].quarantined == "no answer"
    assert state.notices == [("error", "device 0 is in quarantine: no answer")]
    apply(state, ev.EngineStarted(host="node", pid=2, resumed=True))
    assert "0" not in state.devices


def test_pause_of_the_node_gives_one_notice_and_ends() -> None:
    state = fold([story.started()])
    for pause in (5.0, 10.0):
        apply(state, ev.NodePaused(why="GPU 0: no answer", next_probe_s=pause))
    assert (state.paused, len(state.notices)) == ("GPU 0: no answer", 1)
    apply(state, ev.NodeResumed(seconds=12.0))
    assert (state.paused, state.notices[-1]) == ("", ("info", "judging goes on after 12 s"))


def test_retry_drops_the_streamed_text() -> None:
    pieces = list(story.call("softmax#1/1", ev.Role.GENERATOR, "words that count"))
    state = fold(pieces[:2])
    assert state.attempt("softmax#1/1").calls[0].text == "half a rep"
    assert fold(pieces[:3]).attempt("softmax#1/1").calls[0].text == ""
    live = fold(pieces[:-1]).attempt("softmax#1/1").calls[0]
    assert (live.text, live.reasoning, live.live) == ("words that count", "let me think", True)


def test_resume_drops_unfinished_work_of_the_crashed_engine() -> None:
    events = list(story.attempt("softmax#1/1", Verdict.WRONG))
    index = next(index for index, event in enumerate(events) if isinstance(event, ev.StageFinished))
    again = ev.EngineStarted(host="node", pid=2, resumed=True)
    in_call = fold([*events[:4], again])
    assert in_call.attempt("softmax#1/1").calls == []
    assert in_call.instances["softmax#1"].word == "wait"
    judging = fold([*events[:index], again]).attempt("softmax#1/1")
    assert (judging.stage, judging.stages) == (None, [])
    assert [call.finished for call in judging.calls] == [True]
    assert judging.source is not None
    done = fold([*events, again])
    assert done.attempt("softmax#1/1").stages == list(story.evaluation(Verdict.WRONG).stages)


def test_resume_keeps_failed_calls_and_the_wait_for_a_person() -> None:
    events = [
        *story.attempt("softmax#1/1", Verdict.CORRECT),
        ev.WaitingForPerson(attempt="softmax#1/1"),
        ev.CallStarted(
            call="softmax#1/2/generator/1",
            attempt="softmax#1/2",
            role=ev.Role.GENERATOR,
            model="m",
            messages=(),
        ),
        ev.CallFailed(call="softmax#1/2/generator/1", reason="bad_key", message="401"),
        ev.EngineStarted(host="node", pid=2, resumed=True),
    ]
    state = fold(events)
    assert state.attempt("softmax#1/2").calls[0].failed == "bad_key: 401"
    assert state.instances["softmax#1"].word == "person"


def test_decision_is_applied_and_undone_and_a_rejected_attempt_is_not_the_best() -> None:
    attempts = [*story.attempt("softmax#1/1", Verdict.WRONG), *story.attempt("softmax#1/2", Verdict.CORRECT)]
    state = fold([*attempts, ev.WaitingForPerson(attempt="softmax#1/2")])
    instance, attempt = state.instances["softmax#1"], state.attempt("softmax#1/2")
    assert (instance.word, instance.best) == ("person", "softmax#1/2")
    apply(state, ev.DecisionMade(attempt="softmax#1/2", accepted=False, why="slow", by="ada", wall=5.0))
    decision = attempt.decision
    assert (decision.accepted, decision.why, decision.by, decision.wall) == (False, "slow", "ada", 5.0)
    assert (instance.word, attempt.waiting) == ("wait", False)
    assert instance.best == "softmax#1/1"
    apply(state, ev.DecisionUndone(attempt="softmax#1/2", by="ada"))
    assert (attempt.decision, instance.best) == (None, "softmax#1/2")


def test_session_stays_stopped_until_the_next_engine() -> None:
    state = fold([story.started(), ev.EngineStopped(reason="asked")])
    assert state.stopped == "asked"
    apply(state, ev.DecisionMade(attempt="softmax#1/1", accepted=False))
    assert state.stopped == "asked"
    apply(state, ev.EngineStarted(host="node", pid=2, resumed=True))
    assert state.stopped is None


def test_first_of_equal_attempts_is_best_even_if_it_failed() -> None:
    state = fold([*story.attempt("softmax#1/1", Verdict.WRONG), *story.attempt("softmax#1/2", Verdict.WRONG)])
    assert (state.instances["softmax#1"].best, state.instances["softmax#1"].solved) == ("softmax#1/1", False)


@pytest.mark.parametrize("name", ["", "softmax", "softmax#1", "softmax#1/x", "softmax#9/1"])
def test_unknown_attempt_raises_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        fold(WHOLE).attempt(name)


def test_long_reply_is_not_copied_for_each_piece() -> None:
    piece = ev.ReplyPiece(call="softmax#1/1/generator/1", kind="text", text="x" * 400)
    state = fold([piece])
    allocated = 0
    tracemalloc.start()
    try:
        for _ in range(2000):
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            apply(state, piece)
            allocated += tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    reply = state.attempt("softmax#1/1").calls[0].text
    assert reply == "x" * 400 * 2001
    # With a copy for each piece, the sum would be about 1000 times the length of the reply.
    assert allocated < 10 * len(reply)


def test_duration_counts_only_the_time_of_engines() -> None:
    events: list[ev.AnyEvent] = [
        story.started(),
        ev.EngineStarted(host="h", pid=1, mono=1.0),
        ev.Notice(level="info", message="works", mono=31.0),
        ev.EngineStopped(reason="asked", mono=41.0, wall=1_000.0),
        ev.DecisionMade(attempt="softmax#1/1", accepted=False, mono=900.0, wall=9_000.0),
        ev.EngineStarted(host="h", pid=2, resumed=True, mono=2.0, wall=90_000.0),
        ev.Notice(level="info", message="the last event before a crash", mono=12.0, wall=90_010.0),
        ev.Notice(level="warning", message="the journal's last line was incomplete", mono=0.1, wall=99_000.0),
        ev.EngineStarted(host="h", pid=3, resumed=True, mono=0.0, wall=99_001.0),
        ev.SessionFinished(mono=5.0, wall=99_006.0),
        ev.DecisionMade(attempt="softmax#1/1", accepted=False, mono=9.0, wall=99_999.0),
    ]
    assert fold(events).worked_s == 40.0 + 10.0 + 5.0
