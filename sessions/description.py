"""`session.json` and `summary.json`: what lists show of a session without folding it."""

from __future__ import annotations

import msgspec

from harness import Verdict

from .events import SCHEMA, SessionStarted
from .metrics import Rank, rank
from .state import SessionState


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
    best: dict[str, str] = {}
    """By task, the best attempt, correct or not."""
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
    best: dict[str, str] = {}
    speedups: dict[str, float] = {}
    solved: list[str] = []
    judged = 0
    tops: dict[str, Rank] = {}
    accepted = []
    for instance in state.instances.values():
        for attempt in instance.attempts:
            if attempt.decision is not None and attempt.decision.accepted:
                accepted.append(attempt.attempt)
            if attempt.evaluation is None:
                continue
            judged += 1
            order = rank(attempt.evaluation)
            if instance.task not in tops or order > tops[instance.task]:
                tops[instance.task] = order
                best[instance.task] = attempt.attempt
                speedups.pop(instance.task, None)
                if attempt.evaluation.speedup is not None:
                    speedups[instance.task] = attempt.evaluation.speedup
            if attempt.verdict is Verdict.CORRECT and instance.task not in solved:
                solved.append(instance.task)
    return SessionSummary(
        last_seq=state.last_seq,
        last_wall=state.last_wall,
        finished=state.finished,
        stopped=state.stopped,
        attempts=judged,
        solved=tuple(solved),
        best=best,
        speedups=speedups,
        accepted=tuple(accepted),
        input_tokens=state.input_tokens,
        output_tokens=state.output_tokens,
        cost_usd=state.cost_usd,
        unpriced_calls=state.unpriced_calls,
    )
