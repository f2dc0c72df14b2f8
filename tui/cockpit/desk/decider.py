"""How a person's commands leave the cockpit."""

from __future__ import annotations

import asyncio
from typing import Protocol

from sessions.home import Home


class Decider(Protocol):
    """Carries commands to whoever holds the session. Their effect is seen through the session's events alone."""

    async def give(self, session: str, name: str, **arguments: object) -> None:
        """Give the command of an action; it is durable when this returns. An error has one line for the person."""
        ...


class SessionDecider:
    """Asks the session's engine while one runs, else writes to the store. Loads git at the first command, not before.

    Commands go one after the other: one that writes holds the session as an engine does, and the next would look for
    that engine.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._turn = asyncio.Lock()

    async def give(self, session: str, name: str, **arguments: object) -> None:
        """Give the command; new work starts an engine if none runs."""
        from tui.actions.send import give

        async with self._turn:
            await give(self._home, session, name, **arguments)
