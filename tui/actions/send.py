"""Sends a person's command to the engine of a session, or records it in a session at rest."""

from __future__ import annotations

import asyncio
import getpass
import time
from typing import Any

from engine.errors import AlreadyAsked, CommandRefused
from engine.methods import require_method
from engine.plan.job import plan_of, read_plan
from engine.plan.plan import SessionPlan
from engine.process.commands import ENDING, decision_of, record_at_rest
from engine.process.control import Request, send
from engine.process.launch import resume
from sessions import fold
from sessions.catalog import journal_of, require_trust
from sessions.home import Home
from sessions.home_access import require_private
from sessions.store.reconcile import decide
from tui.actions.catalogue import ACTIONS
from tui.diagnostics import Complaint

ENDS_WITHIN_S = 60.0


async def give(home: Home, session: str, name: str, **arguments: Any) -> int | None:
    """Give the command of an action in this person's name; new work starts an engine if none runs.

    Returns the number of the command's event; `None` if an earlier command does the same, and for a decision at rest. The event
    is on disk when this returns; a refusal is a one-line error.
    """
    request = Request(command=name, by=login_name(), **arguments)
    if home.live(session).running:
        answer = await send(home, session, name, by=request.by, **arguments)
        if answer.ok:
            return answer.seq
        if answer.error != ENDING:
            raise Complaint(answer.error or f"the engine of {session} refused to {name} and gave no reason")
        await _wait_for_end(home, session)
    opens = ACTIONS[name].opens
    if opens:
        # Before the event is recorded: a session that cannot be resumed must not be opened again.
        await asyncio.to_thread(plan_at_rest, home, session)
        require_private(home)
    number = None
    try:
        number = await asyncio.to_thread(_record, home, session, request)
    except AlreadyAsked as refusal:
        if not opens:
            raise Complaint(str(refusal)) from refusal
        # An engine ended before it did this: the one that starts now does.
    except CommandRefused as refusal:
        raise Complaint(str(refusal)) from refusal
    if opens:
        await asyncio.to_thread(resume, home, session)
    return number


async def _wait_for_end(home: Home, session: str) -> None:
    """Wait until an engine that ends is gone; it takes seconds, in which it stores the session."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while home.live(session).running:
        if time.monotonic() > deadline:
            raise Complaint(ENDING)
        await asyncio.sleep(0.1)


def _record(home: Home, session: str, request: Request) -> int | None:
    decision = decision_of(request)
    if decision is None:
        return record_at_rest(home, session, request).seq
    decide(home, session, decision)
    return None


def plan_at_rest(home: Home, session: str) -> SessionPlan:
    """Returns the plan with which an engine would go on; `UsageProblem` if none can, `ForeignSession` if none may."""
    require_trust(home, session)
    plan = read_plan(home.live(session)) or plan_of(fold(journal_of(home, session).events).started)
    require_method(plan.method, session)
    return plan


def login_name() -> str:
    """Return the login name that signs commands."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
