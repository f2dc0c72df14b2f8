"""Property: a session's state is the fold of its events, whatever commands a person gives between them."""

from __future__ import annotations

from itertools import chain, islice

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import CommandRefused
from engine.process.commands import event_of
from engine.process.control import STEERING, Request
from sessions import SessionState, apply, fold
from sessions.errors import SessionsError
from sessions.events import AnyEvent, DecisionMade, DecisionUndone, EngineStarted, Event, SessionFinished
from sessions.journal.codec import decode, encode
from sessions.store.decidable import check_decision
from tests.support.sessions import story

INSTANCES = ("", "softmax#1", "softmax#2")
ATTEMPTS = ("softmax#1/1", "softmax#1/2", "softmax#1/3", "softmax#2/2", "softmax#3/1")
WORK: list[Event] = [
    story.started(devices=("cpu", "0", "1")),
    EngineStarted(host="node", pid=1),
    *chain.from_iterable(zip(story.instance(1), story.instance(2), strict=True)),
    SessionFinished(),
]
"""The events of an engine that runs two instances at the same time."""

COMMANDS = st.builds(
    Request, command=st.sampled_from(("accept", "reject", "undo", "stop", "resume", *STEERING)),
    instance=st.sampled_from(INSTANCES), attempt=st.sampled_from(ATTEMPTS),
    text=st.sampled_from(("Use masks.", "lend", "return")), source=st.sampled_from(("", "import triton\n")),
    devices=st.sampled_from(((), ("0",), ("1",), ("all",))), iterations=st.sampled_from((1, 2)),
)  # fmt: skip
STEPS = st.lists(st.tuples(st.integers(0, 25), COMMANDS), min_size=20, max_size=40)
"""Commands, each with the number of the engine's events before it."""


def event_for(request: Request, state: SessionState) -> Event:
    """Return the event of a command as the engine makes it; `resume` is a new engine."""
    match request.command:
        case "resume":
            return EngineStarted(host="node", pid=2, resumed=True)
        case "accept" | "reject" | "undo":
            accepted = request.command == "accept"
            decision = (
                DecisionUndone(attempt=request.attempt)
                if request.command == "undo"
                else DecisionMade(attempt=request.attempt, accepted=accepted)
            )
            check_decision(state, decision)
            return decision
        case _:
            return event_of(request, state)


def play(steps: list[tuple[int, Request]]) -> tuple[SessionState, list[AnyEvent]]:
    """Return the state that a live engine has, and the events that the journal gives back."""
    state, lines = SessionState(), []

    def record(event: Event) -> None:
        number = len(lines) + 1
        written = msgspec.structs.replace(event, seq=number, wall=1.7e9 + number, mono=float(number))
        lines.append(encode(written))
        apply(state, written)  # type: ignore[arg-type]

    work = iter(WORK)
    for count, request in steps:
        for event in islice(work, count):
            record(event)
        try:
            record(event_for(request, state))
        except (CommandRefused, SessionsError):
            continue
    for event in work:
        record(event)
    return state, [decode(line) for line in lines]  # type: ignore[misc]


@given(STEPS, st.floats(0, 1))
def test_state_with_commands_is_the_fold_of_the_journal(steps: list[tuple[int, Request]], cut: float) -> None:
    live, events = play(steps)
    half = int(cut * len(events))
    attached = fold(events[:half])
    repr(attached)  # a screen reads between two events
    for event in events[half:]:
        apply(attached, event)
    assert attached == live
    assert fold(events) == live
