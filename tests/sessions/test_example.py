"""The session that comes with Wavedeck: it can be read from any home, and has what its page in measurements.md says."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import Verdict
from sessions import Home, journal_of, record_at_rest
from sessions import events as ev
from sessions.catalog import delete_session, find_session, list_sessions, session_state
from sessions.errors import CommandRefused
from sessions.journal.file import compressed_path
from sessions.recorded_example import JOURNAL, NAME, WORD
from sessions.store.sharing import push_sessions

MOST_BYTES = 3 << 20


def test_example_is_read_from_a_home_without_sessions_and_leaves_nothing_there(home: Home) -> None:
    assert find_session(home, WORD) == NAME
    journal = journal_of(home, NAME)
    assert not journal.skipped
    assert isinstance(journal.events[-1], ev.SessionFinished)
    assert list_sessions(home) == []
    assert not home.root.exists()
    assert compressed_path(JOURNAL).stat().st_size < MOST_BYTES


def test_two_tasks_of_the_example_get_faster_in_steps_and_each_winner_is_confirmed(home: Home) -> None:
    state = session_state(home, NAME)
    rising = []
    for instance in state.instances.values():
        speeds = [attempt.speed.value for attempt in instance.attempts if attempt.speed is not None]
        rising.append(len(speeds) > 1 and max(speeds) > 1.02 * speeds[0])
    assert sum(rising) >= 2
    assert [state.instances[f"{task}#1"].solved for task in ("softmax", "layer_norm", "matmul_w8a8")] == [
        True
    ] * 3
    assert {attempt.confirmation for attempt in state.attempts() if attempt.exam is not None} == {"confirmed"}


def test_example_has_a_cheat_by_a_person_and_a_rejection_that_the_agent_heard(home: Home) -> None:
    state = session_state(home, NAME)
    edited = state.attempt("softmax#2/1")
    assert (edited.origin, edited.verdict) == (ev.Origin.HUMAN, Verdict.WRONG)
    rejected = state.attempt("layer_norm#1/2")
    assert rejected.rejected
    assert rejected.decision is not None
    [call] = state.attempt("layer_norm#1/4").calls
    assert rejected.decision.why in call.messages[-1].content


def test_nobody_goes_on_with_the_example_deletes_or_pushes_it(home: Home, tmp_path: Path) -> None:
    acts = (
        lambda: record_at_rest(home, NAME, ev.DecisionMade(attempt="softmax#1/2", accepted=True)),
        lambda: delete_session(home, NAME),
        lambda: push_sessions(home, str(tmp_path / "remote"), [NAME], on_progress=lambda _line: None),
    )
    for act in acts:
        with pytest.raises(CommandRefused, match="read only"):
            act()
