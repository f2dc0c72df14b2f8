"""Starting, resuming and waiting for engine processes, from the outside."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from engine.errors import EngineDidNotStart, UsageProblem
from engine.plan import RunPlan, SessionPlan, resolve
from harness import JudgeExtraMissing
from sessions.errors import NoSuchSession, NothingToResume, SessionBusy
from sessions.events import SessionFinished
from sessions.files import write_whole
from sessions.home import Home, LiveFiles, read_engine_info

WRONG_USAGE = 2
"""Exit code of an engine that cannot do what was asked for."""
START_S = 60.0
POLL_S = 0.02


def start(plan: RunPlan, home: Home, *, environ: Mapping[str, str] | None = None) -> str:
    """Check a plan, start its engine in a session of its own and return the session's name once it can be reached.

    Blocks for as long as that takes (about a second). `UsageProblem`, `SuiteError`, `HarnessError`, `SessionsError` when it
    cannot be; `EngineDidNotStart` with the engine's last words when its process ended.
    """
    environ = os.environ if environ is None else environ
    _need_judge()
    home.ensure()
    checked = resolve(plan, home=home, environ=environ)
    live = home.live(checked.session)
    live.folder.mkdir(mode=0o700)
    write_plan(live, checked)
    _spawn(live, environ)
    return checked.session


def resume(home: Home, session: str, *, environ: Mapping[str, str] | None = None) -> None:
    """Start an engine that goes on with a session (its whole name) and return once it can be reached.

    `SessionBusy` when one has it already, `NothingToResume` when it is finished (what was left to put away then is); else as
    `start`.
    """
    environ = os.environ if environ is None else environ
    _need_judge()
    home.ensure()
    live = home.live(session)
    if live.running:
        raise SessionBusy(session)
    _refuse_a_finished_one(home, session)
    _clear_what_a_killed_engine_left(live)
    made = not live.folder.exists()
    live.folder.mkdir(mode=0o700, exist_ok=True)
    try:
        _spawn(live, environ)
    finally:
        # Nothing was taken up, so nothing of it may look like a session.
        if made and not live.journal.exists() and not live.running:
            shutil.rmtree(live.folder, ignore_errors=True)


async def wait(home: Home, session: str) -> None:
    """Return when no engine holds the session any more."""
    live = home.live(session)
    while live.running:  # noqa: ASYNC110  # a lock of another process has no event
        await asyncio.sleep(0.1)


def write_plan(live: LiveFiles, plan: SessionPlan) -> None:
    """Put `plan.json` down, what an engine reads first."""
    write_whole(plan_file(live), msgspec.json.encode(plan) + b"\n", mode=0o600)


def plan_file(live: LiveFiles) -> Path:
    """Where a session's plan lies."""
    return live.folder / "plan.json"


def _refuse_a_finished_one(home: Home, session: str) -> None:
    # Loaded here: they need git, which a start has no use for.
    from sessions.catalog import journal_of
    from sessions.reconcile import resume as take_up

    try:
        finished = any(isinstance(event, SessionFinished) for event in journal_of(home, session).events)
    except NoSuchSession:
        return
    if finished and home.live(session).journal.exists():
        take_up(home, session).close()
    if finished:
        raise NothingToResume(session)


def _clear_what_a_killed_engine_left(live: LiveFiles) -> None:
    left = read_engine_info(live)
    if left is not None and left.host == socket.gethostname():
        Path(left.socket).unlink(missing_ok=True)
    live.engine.unlink(missing_ok=True)


def _need_judge() -> None:
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            raise JudgeExtraMissing(
                f"{package} is not installed, so nothing can be judged here; pip install 'wavedeck[judge]'"
            )


def _spawn(live: LiveFiles, environ: Mapping[str, str]) -> None:
    """Start the engine of a live folder and wait until it can be reached."""
    with live.log.open("ab") as log:
        begun = log.tell()
        # -P: a folder called `engine` where the person stands must not be what runs.
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "engine", str(live.folder)],
            cwd=live.folder.parent,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    # Reaps the engine when it ends before its starter does.
    threading.Thread(target=process.wait, name=f"reaper/{live.session}", daemon=True).start()
    try:
        _wait_until_reachable(live, process, begun)
    except KeyboardInterrupt:
        # Nobody knows the session's name yet, so nobody could stop what it spends.
        process.terminate()
        process.wait()
        if not live.journal.exists():
            shutil.rmtree(live.folder, ignore_errors=True)
        raise


def _wait_until_reachable(live: LiveFiles, process: subprocess.Popen[bytes], begun: int) -> None:
    limit = time.monotonic() + START_S
    while read_engine_info(live) is None and live.folder.exists():
        if process.returncode == 0:
            return
        if process.returncode is not None:
            raise _did_not_start(live, begun, process.returncode)
        if time.monotonic() > limit:
            process.kill()
            raise EngineDidNotStart(f"the engine was not ready after {START_S:.0f} s; see {live.log}")
        time.sleep(POLL_S)


def _did_not_start(live: LiveFiles, begun: int, code: int) -> EngineDidNotStart | UsageProblem:
    """The error of an engine that ended at once; its folder goes when there is no session in it, its traceback is kept."""
    said = live.log.read_bytes()[begun:].decode(errors="replace").strip()
    last = (
        said.splitlines()[-1].strip()
        if said
        else f"the engine ended with {code} and no word: is {live.folder} on a full disk?"
    )
    where = live.log
    if not live.journal.exists():
        if "Traceback" in said:
            crashes = live.folder.parent.parent / "crashes"
            crashes.mkdir(mode=0o700, exist_ok=True)
            where = crashes / f"{live.session}.log"
            where.write_text(said + "\n", encoding="utf-8")
        shutil.rmtree(live.folder, ignore_errors=True)
    tail = f"; the traceback is in {where}" if "Traceback" in said else ""
    return (UsageProblem if code == WRONG_USAGE else EngineDidNotStart)(f"{last}{tail}")
