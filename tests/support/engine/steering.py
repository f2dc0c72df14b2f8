"""A session that a person steers: engines run it one after another in this process, and commands come while they do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.models import Piece, Reply, Request, ScriptedClient
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from engine.run.person import Changes
from sessions import Home, Recorder, fold, resume
from sessions.errors import CommandRefused
from sessions.events import CallStarted, Command, DecisionMade, EngineStarted, Event, SessionFinished, checked
from sessions.journal.journal import read_journal
from sessions.store.reconcile import take_up
from tests.support.engine.engines import ScriptedJudge, plan, run, scripted_answer, shared

PLAN = plan(instances=2, iterations=3)
VERDICTS = ("wrong", "correct 1.5", "correct 2.0")


class Person:
    """A client that gives commands: `acts` maps a call, as `1/2/generator` or `1/2`, to what happens while it is answered."""

    def __init__(
        self,
        acts: dict[str, Callable[[], object]],
        hold: dict[str, asyncio.Event],
        kill_at: str,
        *verdicts: str,
    ) -> None:
        self.model = "scripted:test"
        self.acts = acts
        self.hold = hold
        self.kill_at = kill_at
        self.dead = asyncio.Event()
        self.scripted = ScriptedClient(answer=scripted_answer(*verdicts))

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        call = f"{request.key.instance}/{request.key.attempt}/{request.key.role}"
        for key in (call, call.rpartition("/")[0]):
            self.acts.pop(key, bool)()
        if call in self.hold:
            await self.hold[call].wait()
        if call == self.kill_at:
            self.dead.set()
            await asyncio.Event().wait()
        return await self.scripted.reply(request, on_piece)

    async def close(self) -> None:
        """See `Client`."""


class Table:
    """One engine after another on the same session, in this process."""

    def __init__(self, root: Path, session_plan: SessionPlan = PLAN, *verdicts: str) -> None:
        self.home = Home(root)
        self.plan = session_plan
        self.verdicts = verdicts or VERDICTS
        self.judge = ScriptedJudge()
        self.recorder: Recorder | None = None
        self.changes = Changes()
        self.acts: dict[str, Callable[[], object]] = {}
        self.hold: dict[str, asyncio.Event] = {}
        """Calls that are answered only after an event."""

    def command(self, command: Command) -> Event:
        """Give a command as the engine's socket does."""
        event = self.recorder.record(checked(command, self.recorder.state))
        self.changes.announce()
        return event

    def command_at_rest(self, command: Command) -> None:
        """Give a command while no engine runs the session; it opens a finished session again."""
        with take_up(self.home, self.plan.session) as recorder:
            recorder.record(checked(command, recorder.state))
            assert not recorder.state.finished

    def decide(self, attempt: str, *, accepted: bool, why: str) -> None:
        """Decide about an attempt without waiting for git."""
        self.recorder.record(DecisionMade(attempt=attempt, accepted=accepted, why=why))
        self.changes.announce()

    def ended(self, instance: str) -> bool:
        """Return whether an instance ended."""
        state = self.recorder.state.instances.get(instance) if self.recorder else None
        return state is not None and state.finished is not None

    def is_judged(self, name: str) -> bool:
        """Return whether an attempt has its verdict and its commit."""
        attempts = self.recorder.state.attempts() if self.recorder else []
        return any(attempt.attempt == name and attempt.verdict and attempt.commit for attempt in attempts)

    def waiting(self) -> list[str]:
        """Return the attempts that wait for a person."""
        attempts = self.recorder.state.attempts() if self.recorder else []
        return [attempt.attempt for attempt in attempts if attempt.waiting]

    async def play(self, *, kill_at: str = "") -> list[Event]:
        """Run the session to its end, or until the call `kill_at` is asked; returns all events."""
        live = self.home.files(self.plan.session)
        begun = live.journal.exists()
        recorder = (
            resume(self.home, self.plan.session)
            if begun
            else Recorder.begin(self.home, session_started(self.plan))
        )
        with recorder:
            self.recorder = recorder
            recorder.record(EngineStarted(host="here", pid=1, resumed=begun))
            client = Person(self.acts, self.hold, kill_at, *self.verdicts)
            state = shared(recorder, self.plan, client, self.judge)
            state.changes = self.changes
            engine = asyncio.create_task(run(state))
            killed = asyncio.create_task(client.dead.wait())
            await asyncio.wait({engine, killed}, return_when=asyncio.FIRST_COMPLETED)
            killed.cancel()
            if client.dead.is_set():
                engine.cancel()
                await asyncio.wait({engine})
            else:
                engine.result()
                recorder.record(SessionFinished())
            return list(read_journal(live.journal).events)


async def give_turns() -> None:
    """Let the engine begin what it would begin at once if it were not paused."""
    for _ in range(100):
        await asyncio.sleep(0)


def prompts(events: list[Event]) -> dict[str, str]:
    """Return the last prompt of every call."""
    return {event.call: event.messages[-1].content for event in events if isinstance(event, CallStarted)}


def said(events: list[Event]) -> dict[str, list[str]]:
    """Return what a person says in each prompt that has such a part."""
    parts = {
        call: prompt.partition("# What a person says\n")[2].partition("# Request")[0]
        for call, prompt in prompts(events).items()
    }
    return {call: [line for line in part.splitlines() if line] for call, part in parts.items() if part}


def attempts_of(events: list[Event]) -> dict[str, int]:
    """Return the number of attempts of each instance."""
    return {key: len(instance.attempts) for key, instance in fold(events).instances.items()}


def refused(events: list[Event], words: str, command: Command) -> None:
    """Check that a command is refused with these words after these events."""
    with pytest.raises(CommandRefused, match=words):
        checked(command, fold(events))  # type: ignore[arg-type]


def repeats_its_prompts(events: list[Event]) -> bool:
    """Return whether no prompt differed from the one in the journal."""
    return not any("differs" in message for _, message in fold(events).notices)  # type: ignore[arg-type]
