"""Decisions about attempts: sent to the engine of a running session, or written into a session at rest."""

from __future__ import annotations

import asyncio
import getpass

from engine.process.control import send
from sessions.home import Home
from sessions.store.decisions import decide as decide_at_rest
from sessions.store.decisions import undo as undo_at_rest

from .diagnostics import Complaint


async def decide(
    home: Home, session: str, attempt: str, *, accepted: bool, why: str, by: str, forced: bool = False
) -> None:
    """Accept or reject an attempt; `forced` accepts one that is not correct.

    The decision is stored when this returns; a refusal is a one-line error.
    """
    if home.live(session).running:
        command = "accept" if accepted else "reject"
        await _command(home, session, command, attempt=attempt, why=why, by=by, forced=forced)
    else:
        await asyncio.to_thread(
            decide_at_rest, home, session, attempt, accepted=accepted, why=why, by=by, forced=forced
        )


async def undo(home: Home, session: str, attempt: str, *, by: str) -> None:
    """Undo the current decision about an attempt."""
    if home.live(session).running:
        await _command(home, session, "undo", attempt=attempt, by=by)
    else:
        await asyncio.to_thread(undo_at_rest, home, session, attempt, by=by)


async def _command(home: Home, session: str, command: str, **arguments: str | bool) -> None:
    answer = await send(home, session, command, **arguments)
    if not answer.ok:
        raise Complaint(answer.error or f"the engine of {session} refused to {command} and gave no reason")


def login_name() -> str:
    """Return the login name that signs decisions."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
