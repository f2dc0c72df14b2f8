"""The generated session has everything that the screens must show."""

from benchmarks.eighty_instances import session
from harness import Outcome, Verdict
from sessions import fold
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
