"""Commands that steer a session: sent to its engine, or recorded in a session at rest."""

from __future__ import annotations

import asyncio

from engine.commands import record_at_rest
from engine.control import Request, send
from sessions.home import Home

from .diagnostics import Complaint


async def steer(home: Home, session: str, command: str, **arguments: str) -> None:
    """Give a command. Its event is on disk when this returns; a refusal is a one-line error."""
    if not home.live(session).running:
        await asyncio.to_thread(record_at_rest, home, session, Request(command=command, **arguments))
        return
    answer = await send(home, session, command, **arguments)
    if not answer.ok:
        raise Complaint(answer.error or f"the engine of {session} refused to {command} and gave no reason")
