"""Commands that steer a session: sent to its engine, or recorded in a session at rest."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.errors import CommandRefused
from engine.plan.job import plan_of, read_plan
from engine.plan.plan import SessionPlan
from engine.process.commands import record_at_rest
from engine.process.control import Request, send
from engine.process.launch import resume
from sessions import fold
from sessions.catalog import journal_of
from sessions.home import Home
from sessions.home_access import require_private

from .diagnostics import Complaint


async def steer(home: Home, session: str, command: str, **arguments: Any) -> None:
    """Give a command. Its event is on disk when this returns; a refusal is a one-line error."""
    if not home.live(session).running:
        try:
            await asyncio.to_thread(record_at_rest, home, session, Request(command=command, **arguments))
        except CommandRefused as refusal:
            raise Complaint(str(refusal)) from refusal
        return
    answer = await send(home, session, command, **arguments)
    if not answer.ok:
        raise Complaint(answer.error or f"the engine of {session} refused to {command} and gave no reason")


async def begin(home: Home, session: str, command: str, **arguments: Any) -> None:
    """Give a command that brings new work, and start an engine if none runs."""
    running = home.live(session).running
    if not running:
        # Before the event is recorded: a session that cannot be resumed must not be opened again.
        await asyncio.to_thread(plan_at_rest, home, session)
        require_private(home)
    await steer(home, session, command, **arguments)
    if not running:
        await asyncio.to_thread(resume, home, session)


def plan_at_rest(home: Home, session: str) -> SessionPlan:
    """Returns the plan with which an engine would go on; `UsageProblem` if none can."""
    return read_plan(home.live(session)) or plan_of(fold(journal_of(home, session).events).started)
