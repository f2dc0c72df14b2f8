"""The generated session has everything that the screens must show."""

from benchmarks.generated_session.eighty_instances import session
from harness import Outcome, Verdict
from sessions import fold
from sessions.journal.codec import decode, encode
from sessions.state.state import Confirmation


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
    evaluations = [attempt.evaluation for attempt in attempts if attempt.evaluation]
    assert {row.outcome for evaluation in evaluations for row in evaluation.latency} == set(Outcome)


def test_journal_keeps_every_event() -> None:
    events = session(tasks=8, instances=4)
    assert [decode(encode(event)) for event in events] == events
