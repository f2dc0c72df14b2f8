"""The facts that lists show of a session."""

from __future__ import annotations

import msgspec

from sessions.settings import SCHEMA, Schema, Seconds
from sessions.state.bests import MeasuredBest, measured_bests
from sessions.state.speed import Speed
from sessions.state.state import SessionState
from sessions.state.tally import tally
from sessions.state.winners import bests_by_task, confirmed_tasks


class SessionResults(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a session, as its summary keeps them and lists show them."""

    title: str = ""
    attempts: int = 0
    """Judged attempts (`Tally.judged`)."""
    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""
    confirmed: tuple[str, ...] | None = None
    """Tasks with a confirmed best attempt; `None` if nothing was examined."""
    best: dict[str, str] = {}
    """The best attempt of each task, correct or not, without rejected attempts."""
    speeds: dict[str, Speed] = {}
    """Speed of that attempt by task, if measured."""
    bests: tuple[MeasuredBest, ...] | None = None
    """The best measured attempt of each task, provenance and baseline; `None` if it is not known."""
    accepted: tuple[str, ...] = ()
    """Attempts that people accepted."""
    waiting: tuple[str, ...] = ()
    """Attempts that wait for a person."""
    calls: int | None = None
    """Number of model calls with a reply; `None` if it is not known, as `worked_s`."""
    worked_s: float | None = None
    """Seconds in which an engine worked."""
    input_tokens: int | None = 0
    """`None` if calls finished and none says its count; so for `output_tokens`."""
    output_tokens: int | None = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0


class SessionSummary(SessionResults, frozen=True, kw_only=True):
    """The state of a session at its last event; a cache that can be rebuilt from the events."""

    schema: Schema = SCHEMA
    last_seq: int = 0
    last_wall: Seconds | None = None
    finished: bool = False
    stopped: str | None = None
    """Reason of an engine that stopped in good order."""


def summarise(state: SessionState) -> SessionSummary:
    """Returns the summary of a session in this state."""
    bests = bests_by_task(state)
    attempts = state.attempts()
    calls = sum(call.finished for attempt in attempts for call in attempt.calls)
    return SessionSummary(
        last_seq=state.last_seq,
        last_wall=state.last_wall,
        finished=state.finished,
        stopped=state.stopped,
        title=state.title,
        attempts=tally(attempts).judged,
        solved=tuple(
            dict.fromkeys(instance.task for instance in state.instances.values() if instance.solved)
        ),
        confirmed=confirmed_tasks(state, state.tasks()),
        best={task: best.attempt for task, best in bests.items()},
        speeds={task: speed for task, best in bests.items() if (speed := best.speed) is not None},
        bests=measured_bests(state),
        accepted=tuple(attempt.attempt for attempt in attempts if attempt.accepted),
        waiting=tuple(attempt.attempt for attempt in attempts if attempt.waiting),
        calls=calls,
        worked_s=state.worked_s,
        input_tokens=state.input_tokens or (None if calls else 0),
        output_tokens=state.output_tokens or (None if calls else 0),
        cost_usd=state.cost_usd,
        unpriced_calls=state.unpriced_calls,
    )
