"""Starts real engine processes with the real harness and a model server on loopback."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import psutil

from engine.models import Limits
from engine.plan.request import RunPlan
from engine.process import launch
from sessions import Home
from sessions.engine_info import EngineInfo, read_engine_info
from sessions.events import Event
from sessions.journal.journal import read_journal
from sessions.store.store import Store
from suites import baseline_source, load_task
from tests.support.sessions.story import stored_events
from tests.support.waiting import wait_until

from .model_server import Answer, ModelServer, Seen, says

KEY = "sk-that-nobody-may-see"


def plan_for(server: ModelServer, **changes: object) -> RunPlan:
    """Return a small run plan on `vector_add` with the model on loopback."""
    fields: dict[str, object] = {
        "model": f"openai:test@{server.openai_url}",
        "tasks": ("vector_add",),
        "instances": 1,
        "iterations": 2,
        "seed": 7,
        "limits": Limits(tries=2, wait_low_s=0.0, wait_high_s=0.1),
    }
    return RunPlan(**(fields | changes))  # type: ignore[arg-type]


def right(mark: object = "") -> str:
    """Return a reply with a correct kernel."""
    source = baseline_source(load_task("vector_add"))
    return f"## Strategy\n\nOne block a program.\n\n```python\n{source}\n# {mark}\n```\n"


def wrong() -> str:
    """Return a reply with a kernel that subtracts."""
    source = (
        baseline_source(load_task("vector_add"))
        .replace(" + tl.load(", " - tl.load(")
        .replace("x + y", "x - y")
    )
    return f"## Strategy\n\nGuess.\n\n```python\n{source}\n```\n"


def repaired(seen: Seen) -> Answer:
    """Reply with a wrong kernel, a reflection, then the correct kernel each time."""
    if "Explain the failure" in seen.prompt:
        return says("It subtracts.")
    learned = "It subtracts." in seen.prompt or "# repaired" in seen.prompt
    return says(right("repaired") if learned else wrong())


def journal(home: Home, session: str) -> list[Event]:
    """Return the events so far, from the live journal or the store."""
    live = home.files(session).journal
    with contextlib.suppress(FileNotFoundError):
        return list(read_journal(live).events)
    with Store.read_only(home.store) as store:
        return list(stored_events(store, session))


def until_left(home: Home, session: str) -> None:
    """Return as soon as no engine runs the session."""
    wait_until(lambda: not home.files(session).running, "the engine to leave")


def info_of(home: Home, session: str) -> EngineInfo:
    """Return the contact data of the running engine."""
    return read_engine_info(home.files(session))


@contextlib.contextmanager
def started(plan: RunPlan, home: Home, **environ: str) -> Iterator[str]:
    """Start a session; at the end of the block its engine is killed if it still runs."""
    session = launch.start(plan, home, environ=dict(os.environ) | environ)
    try:
        yield session
    finally:
        info = read_engine_info(home.files(session))
        if info is not None and home.files(session).running:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(info.pid).kill()
            until_left(home, session)
