"""`session.json` and `summary.json`: what lists show of a session without folding it."""

from __future__ import annotations

import msgspec

from harness import Verdict

from .events import SCHEMA, MethodOptions, SessionStarted
from .state import AttemptState, Confirmation, SessionState
from .winners import best_of


class SessionDescription(msgspec.Struct, frozen=True, kw_only=True):
    """`session.json`: how a session was started; the fields of `session_started`."""

    schema: int = SCHEMA
    session: str
    started: float
    """Seconds since the epoch, UTC."""
    method: str
    model: str
    tasks: tuple[str, ...]
    instances: int
    iterations: int
    seed: int
    devices: tuple[str, ...]
    targets: tuple[str, ...]
    review: str
    budget_usd: float | None = None
    budget_tokens: int | None = None
    first_chain: int = 1
    series: str = ""
    options: MethodOptions = MethodOptions()
    against: str = ""
    against_source: str = ""
    spread: bool = False
    versions: dict[str, str] = {}
    templates: dict[str, str] = {}


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`summary.json`: where a session stood at its last event; a cache, made anew from the events at any time."""

    schema: int = SCHEMA
    last_seq: int = 0
    last_wall: float | None = None
    finished: bool = False
    stopped: str | None = None
    """Reason of an engine that left in order."""
    attempts: int = 0
    """Judged ones."""
    solved: tuple[str, ...] = ()
    """Tasks with a correct attempt."""
    confirmed: tuple[str, ...] | None = None
    """Tasks with a confirmed attempt; `None` where nothing was examined."""
    best: dict[str, str] = {}
    """By task, the best attempt, correct or not, that no person rejected."""
    speedups: dict[str, float] = {}
    """By task, that attempt's speedup, where one was measured."""
    accepted: tuple[str, ...] = ()
    """Attempts that people accepted."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    unpriced_calls: int = 0


DESCRIPTION: msgspec.json.Decoder[SessionDescription] = msgspec.json.Decoder(SessionDescription)
SUMMARY: msgspec.json.Decoder[SessionSummary] = msgspec.json.Decoder(SessionSummary)


def describe(event: SessionStarted) -> SessionDescription:
    """`session.json` of a session that began with this event."""
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    for name in ("seq", "wall", "mono"):
        del fields[name]
    return SessionDescription(started=event.wall, **fields)


def summarise(state: SessionState) -> SessionSummary:
    """`summary.json` of a session in this state."""
    by_task: dict[str, list[AttemptState]] = {}
    for instance in state.instances.values():
        by_task.setdefault(instance.task, []).extend(instance.attempts)
    found = {task: best for task, attempts in by_task.items() if (best := best_of(attempts)) is not None}
    attempts = state.attempts()
    return SessionSummary(
        last_seq=state.last_seq,
        last_wall=state.last_wall,
        finished=state.finished,
        stopped=state.stopped,
        attempts=sum(each.evaluation is not None for each in attempts),
        solved=tuple(
            task for task, made in by_task.items() if any(each.verdict is Verdict.CORRECT for each in made)
        ),
        confirmed=_confirmed(by_task),
        best={task: best.attempt for task, best in found.items()},
        speedups={task: best.speedup for task, best in found.items() if best.speedup is not None},
        accepted=tuple(
            each.attempt for each in attempts if each.decision is not None and each.decision.accepted
        ),
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        cost_usd=state.cost_usd,
        unpriced_calls=state.unpriced_calls,
    )


def _confirmed(by_task: dict[str, list[AttemptState]]) -> tuple[str, ...] | None:
    said = {task: {each.confirmation for each in attempts} for task, attempts in by_task.items()}
    if not any(words - {Confirmation.NOT_EXAMINED} for words in said.values()):
        return None
    return tuple(task for task, words in said.items() if Confirmation.CONFIRMED in words)
