"""Property: a session's state is the fold of its events, whatever commands a person gives between them."""

from __future__ import annotations

from itertools import chain, islice

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from sessions import SessionState, apply, fold
from sessions.errors import CommandRefused
from sessions.events import (
    COMMANDS,
    AnyEvent,
    Command,
    EngineStarted,
    Event,
    Ping,
    SessionFinished,
    Stop,
    checked,
)
from sessions.journal.codec import decode, encode
from tests.support.sessions import story

ATTEMPTS = ("softmax#1/1", "softmax#1/2", "softmax#1/3", "softmax#2/2", "softmax#3/1")
WORK: list[Event] = [
    story.started(devices=("cpu", "0", "1")),
    EngineStarted(host="node", pid=1),
    *chain.from_iterable(zip(story.instance(1), story.instance(2), strict=True)),
    SessionFinished(),
]
"""The events of an engine that runs two instances at the same time."""

VALUES: dict[str, tuple[object, ...]] = {
    "instance": ("", "softmax#1", "softmax#2"),
    "attempt": ATTEMPTS,
    "base": ATTEMPTS,
    "text": ("Use masks.",),
    "hint": ("", "Use masks."),
    "source": ("", "import triton\n"),
    "title": ("", "night"),
    "device": ("0", "1"),
    "devices": ((), ("0",), ("1",), ("all",)),
    "iterations": (1, 2),
    "accepted": (True, False),
}
"""Values of the fields that a drawn command gives; other fields have their defaults."""


def commands_of(kind: type[Command]) -> st.SearchStrategy[Command]:
    fields = [name for name in kind.given_fields() if name in VALUES]
    return st.builds(kind, **{name: st.sampled_from(VALUES[name]) for name in fields})


KINDS = [kind for kind in COMMANDS.values() if kind not in (Ping, Stop)]
DRAWN = st.one_of(*map(commands_of, KINDS), st.just(EngineStarted(host="node", pid=2, resumed=True)))
"""Commands, and engines that resume the session."""
STEPS = st.lists(st.tuples(st.integers(0, 25), DRAWN), min_size=20, max_size=40)
"""Commands, each with the number of the engine's events before it."""


def play(steps: list[tuple[int, Event]]) -> tuple[SessionState, list[AnyEvent]]:
    """Return the state that a live engine has, and the events that the journal gives back."""
    state, lines = SessionState(), []

    def record(event: Event) -> None:
        number = len(lines) + 1
        written = msgspec.structs.replace(event, seq=number, wall=1.7e9 + number, mono=float(number))
        lines.append(encode(written))
        apply(state, written)  # type: ignore[arg-type]

    work = iter(WORK)
    for count, drawn in steps:
        for event in islice(work, count):
            record(event)
        try:
            record(checked(drawn, state) if isinstance(drawn, Command) else drawn)
        except CommandRefused:
            continue
    for event in work:
        record(event)
    return state, [decode(line) for line in lines]  # type: ignore[misc]


@given(STEPS, st.floats(0, 1))
def test_state_with_commands_is_the_fold_of_the_journal(steps: list[tuple[int, Event]], cut: float) -> None:
    live, events = play(steps)
    half = int(cut * len(events))
    attached = fold(events[:half])
    repr(attached)  # a screen reads between two events
    for event in events[half:]:
        apply(attached, event)
    assert attached == live
    assert fold(events) == live
