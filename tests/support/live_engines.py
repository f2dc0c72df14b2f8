"""Engine processes as people start them: the real harness behind, a model server on loopback before."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import psutil

from engine import launch
from engine.models import Limits
from engine.plan import RunPlan
from sessions import Home
from sessions.events import Event
from sessions.home import EngineInfo, read_engine_info
from sessions.journal import read_journal
from sessions.store import Store
from suites import baseline_source, load_task

from .model_server import ModelServer

WAIT_S = 120.0
KEY = "sk-that-nobody-may-see"


def plan_for(server: ModelServer, **changes: object) -> RunPlan:
    """A small run on `vector_add` with the model on loopback."""
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
    """A reply with a correct kernel."""
    source = baseline_source(load_task("vector_add"))
    return f"## Strategy\n\nOne block a program.\n\n```python\n{source}\n# {mark}\n```\n"


def wrong() -> str:
    """A reply with a kernel that subtracts."""
    source = (
        baseline_source(load_task("vector_add"))
        .replace(" + tl.load(", " - tl.load(")
        .replace("x + y", "x - y")
    )
    return f"## Strategy\n\nGuess.\n\n```python\n{source}\n```\n"


def journal(home: Home, session: str) -> list[Event]:
    """The events so far, wherever they are."""
    live = home.live(session).journal
    with contextlib.suppress(FileNotFoundError):
        return list(read_journal(live).events)
    with Store.read_only(home.store) as store:
        return list(store.session_events(session))


def until(condition: Callable[[], object], what: str) -> None:
    """Return once the condition holds; fails after `WAIT_S`."""
    limit = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < limit, f"waited {WAIT_S:.0f} s for {what}"
        time.sleep(0.02)


def until_left(home: Home, session: str) -> None:
    """Return once no engine holds the session."""
    until(lambda: not home.live(session).running, "the engine to leave")


def info_of(home: Home, session: str) -> EngineInfo:
    """Where the running engine is."""
    info = read_engine_info(home.live(session))
    assert info is not None
    return info


@contextlib.contextmanager
def started(plan: RunPlan, home: Home, **environ: str) -> Iterator[str]:
    """A session whose engine is ended with the block, whatever happened in it."""
    session = launch.start(plan, home, environ=dict(os.environ) | environ)
    try:
        yield session
    finally:
        info = read_engine_info(home.live(session))
        if info is not None and home.live(session).running:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(info.pid).kill()
            until_left(home, session)
