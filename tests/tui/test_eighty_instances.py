"""The generated session has everything that the screens must show."""

from benchmarks.eighty_instances import session
from harness import Outcome, Verdict
from sessions import fold
from sessions.journal.codec import decode, encode
from sessions.state.state import Confirmation, SessionState


def speedups(state: SessionState) -> set[Outcome]:
    return {
        latency.outcome
        for attempt in state.attempts()
        if attempt.evaluation
        for latency in attempt.evaluation.latency
    }


def test_has_every_state_and_every_verdict() -> None:
    state = fold(session())
    attempts = state.attempts()
    assert len(state.instances) == 80
    assert {attempt.verdict for attempt in attempts} >= set(Verdict)
    assert {instance.word for instance in state.instances.values()} >= {
        *("generate", "optimize", "reflect", "tune", "static", "call", "compile", "execution", "integrity"),
        *("performance", "person", "wait", "done", "failed"),
    }
    assert state.on_hold
    assert {attempt.confirmation for attempt in attempts} == set(Confirmation)
    assert speedups(state) == set(Outcome)


def test_has_trouble_that_needs_a_person() -> None:
    state = fold(session())
    assert state.devices["7"].quarantined
    assert state.devices["6"].waits_for
    assert state.started is not None
    assert state.started.budget_usd is not None
    assert state.cost_usd is not None
    assert round(state.cost_usd / state.started.budget_usd, 2) == 0.91
    assert any(call.last_retry for attempt in state.attempts() for call in attempt.calls)
    assert max(len(attempt.spread) for attempt in state.attempts()) == 6
    stuck = [attempt.evaluation for attempt in state.instances["layer_norm#1"].attempts if attempt.evaluation]
    assert stuck[-1].verdict is Verdict.WRONG
    assert stuck[-3].error == stuck[-2].error == stuck[-1].error


def test_without_a_gpu_nothing_is_timed() -> None:
    state = fold(session(3, 2, 0))
    assert list(state.devices) == ["cpu"]
    assert not speedups(state)
    assert any(attempt.evaluation.estimate for attempt in state.attempts() if attempt.evaluation)


def test_is_the_same_each_time_and_can_be_written() -> None:
    events = session(3, 2, 3)
    assert events == session(3, 2, 3)
    assert [decode(encode(event)) for event in events] == events
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
