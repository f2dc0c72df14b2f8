"""A person who steers a session while its engine is killed, and the engine's promises to that person, checked on events."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from engine.errors import EngineUnreachable
from engine.process.control import Answer, send
from harness import Verdict
from sessions import Home, SessionState, apply, fold
from sessions.engine_info import read_engine_info
from sessions.events import (
    UNASKED,
    AttemptBanned,
    AttemptJudged,
    AttemptPinned,
    AttemptStarted,
    CallFinished,
    CallStarted,
    CandidateProposed,
    Command,
    DecisionMade,
    DecisionUndone,
    EndReason,
    Event,
    HintGiven,
    InstanceForked,
    Origin,
    Paused,
    PersonCommand,
    RetireAsked,
    SessionExtended,
    Unpaused,
    WinnerExamined,
    orders_until,
)
from sessions.names import instance_key, split_attempt, split_call
from sessions.store.store import AcceptedKernel
from tests.support.engine.engines import candidate
from tests.support.engine.live_engines import journal, until_left
from tests.support.waiting import LIMIT_S

WEIGHTS = {
    "hint": 4,
    "pause": 3,
    "unpause": 3,
    "pin": 3,
    "ban": 2,
    "accept": 4,
    "reject": 3,
    "undo": 2,
    "extend": 1,
    "fork": 1,
    "edit": 1,
    "retire": 1,
}
"""How often each command is given."""


@dataclass(frozen=True, slots=True)
class Order:
    """One command with its outcome."""

    name: str
    """Who gave the command; each command has another person, so its event is found again."""
    command: Command
    answer: Answer | None
    """`None` if the engine died before it answered."""


@dataclass(slots=True)
class Person:
    """Gives random commands that are mostly possible."""

    home: Home
    session: str
    chance: random.Random
    orders: list[Order] = field(default_factory=list)
    _given: int = 0

    def events(self) -> list[Event]:
        """Return the session's events so far."""
        return journal(self.home, self.session)

    def state(self) -> SessionState:
        """Return the session's state so far."""
        return fold(self.events())  # type: ignore[arg-type]

    async def give_any(self) -> None:
        """Give a random command."""
        [name] = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
        await self.give(self._command(name, f"person-{self._given + 1}"))

    async def give(self, command: PersonCommand) -> None:
        """Give a command and remember its outcome."""
        self._given += 1
        name = f"person-{self._given}"
        try:
            answer = await send(self.home, self.session, msgspec.structs.replace(command, by=name))
        except EngineUnreachable:
            answer = None
        self.orders.append(Order(name, command, answer))

    def _command(self, action: str, name: str) -> PersonCommand:
        state = self.state()
        instances = state.instance_keys()
        judged = [attempt for attempt in state.attempts() if attempt.source and attempt.evaluation]
        correct = [attempt for attempt in judged if attempt.verdict is Verdict.CORRECT]
        decided = [attempt for attempt in judged if attempt.decision]
        wanted = {"pin": correct, "accept": correct, "undo": decided}.get(action, judged)
        attempt = self.chance.choice(wanted).attempt if wanted else f"{instances[0]}/1"
        match action:
            case "hint":
                return HintGiven(instance=self.chance.choice(instances), text=f"Hint of {name}.")
            case "pause":
                return Paused(instance=self.chance.choice(["", *instances]))
            case "unpause":
                return Unpaused(instance=self.chance.choice(["", *instances]))
            case "retire":
                return RetireAsked(instance=self.chance.choice(instances))
            case "extend":
                return SessionExtended(iterations=1)
            case "fork":
                return InstanceForked(base=attempt, hint=f"Hint of {name}.")
            case "edit":
                return InstanceForked(base=attempt, source=candidate("correct 1.25", name))
            case "accept" | "reject":
                return DecisionMade(attempt=attempt, accepted=action == "accept", why=f"Reason of {name}.")
            case "pin":
                return AttemptPinned(attempt=attempt)
            case "ban":
                return AttemptBanned(attempt=attempt)
            case _:
                return DecisionUndone(attempt=attempt)

    async def steer_until_killed(self) -> None:
        """Let the engine work a random while and give commands; then kill it while others are on their way."""
        await self._work_a_while()
        for _ in range(self.chance.randrange(4)):
            await self.give_any()
        live = self.home.files(self.session)
        async with asyncio.TaskGroup() as group:
            for _ in range(self.chance.randrange(1, 5)):
                group.create_task(self.give_any())
            await asyncio.sleep(self.chance.random() * 0.03)
            info = read_engine_info(live)
            if info is not None and live.running:
                os.kill(info.pid, signal.SIGKILL)
        await asyncio.to_thread(until_left, self.home, self.session)

    async def _work_a_while(self) -> None:
        """Wait for a random number of events, or a moment if the session waits for a person."""
        live = self.home.files(self.session)
        count = len(self.events()) + self.chance.randrange(30)
        for _ in range(60):
            if not live.running or len(self.events()) >= count:
                return
            await asyncio.sleep(0.01)

    async def let_finish(self) -> None:
        """Answer whatever the session waits for, until its engine leaves."""
        live, limit = self.home.files(self.session), time.monotonic() + LIMIT_S
        while live.running:
            assert time.monotonic() < limit, f"waited {LIMIT_S:.0f} s for the engine to leave"
            state = self.state()
            if state.on_hold:
                await self.give(Unpaused())
            for attempt in state.attempts():
                if attempt.waiting:
                    await self.give(DecisionMade(attempt=attempt.attempt, accepted=True, why="It is faster."))
            await asyncio.sleep(0.02)


# Promises


def assert_orders_hold(orders: Sequence[Order], events: Sequence[Event]) -> None:
    """An acknowledged command is one event; a refused command is none; any other is whole or absent."""
    state = fold(events)  # type: ignore[arg-type]
    on_hold: set[str] = set()
    for event in events:
        if isinstance(event, Paused):
            on_hold.add(event.instance)
        elif isinstance(event, Unpaused):
            on_hold -= {event.instance} if event.instance else set(on_hold)
    assert state.on_hold == on_hold
    for order in orders:
        written = [event for event in events if getattr(event, "by", "") == order.name]
        if order.answer is None:
            assert len(written) <= 1, order
        elif order.answer.ok:
            assert [event.seq for event in written] == [order.answer.seq], order
        else:
            assert written == [], order
        for event in written:
            assert type(event) is type(order.command), order
            for name in order.command.given_fields():
                assert name == "by" or getattr(event, name) == getattr(order.command, name), order
            assert is_in_state(event, state), order


def is_in_state(event: Event, state: SessionState) -> bool:
    """Return whether the state has the command of this event."""
    match event:
        case InstanceForked():
            return state.forks[instance_key(event.task, event.instance)] == event
        case SessionExtended():
            return event in state.extensions
        case RetireAsked():
            return state.retired[event.instance].startswith("person-")
        case Paused() | Unpaused():
            return True
        case _:
            return event in state.commands


def assert_nothing_is_paid_twice(events: Sequence[Event], requests: int) -> None:
    """Each call, candidate, verdict and exam is there once, and only calls without a reply are made again."""
    for kind in (CallFinished, CandidateProposed, AttemptJudged, WinnerExamined):
        name = "call" if kind is CallFinished else "attempt"
        counts = Counter(getattr(event, name) for event in events if isinstance(event, kind))
        assert set(counts.values()) <= {1}, f"{kind.__name__} twice"
    finished: set[str] = set()
    for event in events:
        if isinstance(event, CallStarted):
            assert event.call not in finished, f"{event.call} was asked again"
        elif isinstance(event, CallFinished):
            finished.add(event.call)
    assert len(finished) <= requests <= sum(isinstance(event, CallStarted) for event in events)


def assert_attempts_follow_the_person(events: Sequence[Event]) -> None:
    """No work starts in a pause, no attempt is derived from a banned one, and each pin chooses the base."""
    state = SessionState()
    for event in events:
        if isinstance(event, AttemptStarted | CallStarted):
            instance = split_attempt(event.attempt).instance
            assert not state.is_on_hold(instance), f"{event.attempt} works in a pause"
        apply(state, event)  # type: ignore[arg-type]
    for attempt in state.attempts():
        instance = split_attempt(attempt.attempt).instance
        orders = orders_until(state, instance, attempt.heard)
        assert attempt.base not in orders.banned, f"{attempt.attempt} is derived from a banned attempt"
        if attempt.origin is Origin.OPTIMIZE and orders.pinned is not None:
            assert attempt.base == orders.pinned, f"{attempt.attempt} ignores a pin"


def assert_each_hint_reaches_one_attempt(events: Sequence[Event]) -> None:
    """A hint is in the prompts of the next attempt of its instance, and in no others."""
    state = fold(events)  # type: ignore[arg-type]
    for hint in events:
        if isinstance(hint, HintGiven):
            asked = [
                attempt
                for attempt in state.instances[hint.instance].attempts
                if attempt.origin not in UNASKED
            ]
            after = [attempt.attempt for attempt in asked if attempt.heard >= hint.seq]
            quoted = {
                split_call(event.call).attempt
                for event in events
                if isinstance(event, CallStarted)
                and any(hint.text in message.content for message in event.messages)
            }
            assert quoted <= set(after[:1]), hint
            if after and state.attempt(after[0]).calls:
                assert quoted == set(after[:1]), hint


def assert_each_instance_ended(events: Sequence[Event]) -> None:
    """An instance uses all its iterations, also those that a person gave, or ends because a person stopped it."""
    state = fold(events)  # type: ignore[arg-type]
    for key, instance in state.instances.items():
        assert instance.finished, key
        edited = key in state.forks and state.forks[key].source
        if key in state.retired or edited:
            continue
        asked = sum(attempt.origin not in UNASKED for attempt in instance.attempts)
        if instance.finished == EndReason.NO_GAIN:
            assert not any(isinstance(more, SessionExtended) for more in state.extensions), key
        else:
            assert (instance.finished, asked) == ("iterations", sum(state.phases(key))), key
    assert set(state.forks) <= set(state.instances)


def latest_accepted(events: Sequence[Event]) -> dict[str, str]:
    """Return the attempt that was accepted last, by task; an undone or replaced decision does not count."""
    standing: dict[str, DecisionMade] = {}
    for event in events:
        if isinstance(event, DecisionMade | DecisionUndone):
            standing.pop(event.attempt, None)
            if isinstance(event, DecisionMade) and event.accepted:
                standing[event.attempt] = event
    return {instance_task(decision.attempt): decision.attempt for decision in standing.values()}


def instance_task(attempt: str) -> str:
    """Return the full name of an attempt's task."""
    return f"starter/{attempt.partition('#')[0]}"


def assert_branch_follows_decisions(accepted: dict[str, AcceptedKernel], events: Sequence[Event]) -> None:
    """The branch `accepted` has the kernel that a person accepted last."""
    on_branch = {task: kernel.attempt for task, kernel in accepted.items()}
    assert on_branch == latest_accepted(events)
