"""How a person's decisions and commands leave the cockpit."""

from __future__ import annotations

import asyncio
from typing import Protocol

from engine.errors import EngineError
from sessions.errors import SessionsError
from sessions.home import Home
from tui.diagnostics import Complaint


class DecisionFailed(Exception):
    """A decision or command was not taken; the message is one line that says why and what to do."""


class Decider(Protocol):
    """Carries decisions and commands to whoever holds the session.

    Each method returns when the decision is durable and raises `DecisionFailed` when it is not. What changed is seen through the
    session's events alone.
    """

    async def decide(self, session: str, attempt: str, *, accepted: bool, why: str) -> None:
        """Accept or reject an attempt (`softmax#2/7`)."""
        ...

    async def undo(self, session: str, attempt: str) -> None:
        """Take the standing decision about an attempt back."""
        ...

    async def command(self, session: str, command: str, **arguments: object) -> None:
        """Steer the session: a command of `engine.process.commands` with its arguments."""
        ...


class SessionDecider:
    """Asks the session's engine while one runs, else writes to the store. Loads git at the first decision, not before.

    Decisions go one after the other: one that writes holds the session as an engine does, and the next would look for
    that engine.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._turn = asyncio.Lock()

    async def decide(self, session: str, attempt: str, *, accepted: bool, why: str) -> None:
        """Accept or reject an attempt."""
        from tui.deciding import decide, login_name

        try:
            async with self._turn:
                await decide(self._home, session, attempt, accepted=accepted, why=why, by=login_name())
        except (EngineError, SessionsError, Complaint) as error:
            raise DecisionFailed(str(error)) from error

    async def undo(self, session: str, attempt: str) -> None:
        """Take the standing decision back."""
        from tui.deciding import login_name, undo

        try:
            async with self._turn:
                await undo(self._home, session, attempt, by=login_name())
        except (EngineError, SessionsError, Complaint) as error:
            raise DecisionFailed(str(error)) from error

    async def command(self, session: str, command: str, **arguments: object) -> None:
        """Steer the session; new work starts an engine if none runs."""
        from engine.process.commands import OPENING
        from tui.deciding import login_name
        from tui.steering import begin, steer

        give = begin if command in OPENING else steer
        try:
            async with self._turn:
                await give(self._home, session, command, by=login_name(), **arguments)
        except (EngineError, SessionsError, Complaint) as error:
            raise DecisionFailed(str(error)) from error
