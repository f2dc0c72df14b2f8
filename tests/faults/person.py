"""A person who steers a session while its engine is killed, and who remembers what the engine acknowledged."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from dataclasses import dataclass, field

import msgspec

from engine.errors import EngineUnreachable
from engine.process.control import Answer, send
from harness import Verdict
from sessions import Home, SessionState, fold
from sessions.engine_info import read_engine_info
from sessions.events import (
    AttemptBanned,
    AttemptPinned,
    Command,
    DecisionMade,
    DecisionUndone,
    Event,
    HintGiven,
    InstanceForked,
    Paused,
    PersonCommand,
    RetireAsked,
    SessionExtended,
    Unpaused,
)
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
