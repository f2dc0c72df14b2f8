"""Sends a person's command to the engine of a session, or records it in a session at rest."""

from __future__ import annotations

import asyncio
import getpass
import time

import msgspec

from engine.methods import require_method
from engine.plan.job import plan_of, read_plan
from engine.plan.plan import SessionPlan
from engine.process.control import ENDING, send
from engine.process.launch import resume
from sessions.catalog import require_trust, session_state
from sessions.errors import CommandRefused
from sessions.events import PersonCommand
from sessions.home import Home
from sessions.home_access import require_private
from sessions.store.reconcile import record_at_rest
from tui.diagnostics import Complaint

ENDS_WITHIN_S = 60.0


async def give(home: Home, session: str, command: PersonCommand) -> int | None:
    """Give a command in this person's name; new work starts an engine if none runs.

    Returns the number of the command's event; `None` if an earlier command does the same. The event is on disk when this returns.
    Raises `CommandRefused`.
    """
    command = msgspec.structs.replace(command, by=login_name())
    if home.files(session).running:
        answer = await send(home, session, command)
        if answer.ok:
            return answer.seq
        if answer.error != ENDING:
            raise CommandRefused(answer.error or f"the engine of {session} refused and gave no reason")
        await _wait_for_end(home, session)
    if command.opens:
        # Before the event is recorded: a session that cannot be resumed must not be opened again.
        await asyncio.to_thread(plan_at_rest, home, session)
        require_private(home)
    event = await asyncio.to_thread(record_at_rest, home, session, command)
    if command.opens:
        await asyncio.to_thread(resume, home, session)
    return event.seq if event is not None else None


async def _wait_for_end(home: Home, session: str) -> None:
    """Wait until an engine that ends is gone; it takes seconds, in which it stores the session."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while home.files(session).running:
        if time.monotonic() > deadline:
            raise Complaint(ENDING)
        await asyncio.sleep(0.1)


def plan_at_rest(home: Home, session: str) -> SessionPlan:
    """Returns the plan with which an engine would go on; `UsageProblem` if none can, `ForeignSession` if none may."""
    require_trust(home, session)
    plan = read_plan(home.files(session)) or plan_of(session_state(home, session).started)
    require_method(plan.method, session)
    return plan


def login_name() -> str:
    """Return the login name that signs commands."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
