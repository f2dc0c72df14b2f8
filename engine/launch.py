"""Starts and resumes engine processes, and waits for their end; used by the command line."""

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from engine.errors import EngineDidNotStart, UsageProblem
from engine.plan import RunPlan, SessionPlan, resolve
from harness import JudgeExtraMissing
from sessions.errors import NoSuchSession, NothingToResume, SessionBusy
from sessions.files import write_whole
from sessions.home import Home, LiveFiles, read_engine_info

WRONG_USAGE = 2
"""Exit code of an engine that got an impossible request."""
ENGINE = "engine"
"""Module of the engine process."""
START_S = 60.0
POLL_S = 0.02


def start(plan: RunPlan, home: Home, *, environ: Mapping[str, str] | None = None) -> str:
    """Check a plan, start its engine in a process session of its own, and return the session's name.

    Returns when the engine can be reached, after about a second. Raises `UsageProblem`, `SuiteError`, `HarnessError`
    or `SessionsError` if the run is impossible, and `EngineDidNotStart` with the engine's last line if its process
    ended.
    """
    environ = os.environ if environ is None else environ
    _require_judge()
    home.ensure()
    checked = resolve(plan, home=home, environ=environ)
    live = home.live(checked.session)
    live.folder.mkdir(mode=0o700)
    write_plan(live, checked)
    _spawn(live, environ)
    return checked.session


def resume(home: Home, session: str, *, environ: Mapping[str, str] | None = None) -> None:
    """Start an engine that continues a session (its full name); returns when the engine can be reached.

    Raises `SessionBusy` if an engine has the session, `NothingToResume` if the session is finished, else as `start`.
    A finished session that was not yet moved to the store is moved there first.
    """
    environ = os.environ if environ is None else environ
    _require_judge()
    home.ensure()
    live = home.live(session)
    if live.running:
        raise SessionBusy(session)
    _refuse_finished(home, session)
    _clear_dead_engine(live)
    made = not live.folder.exists()
    live.folder.mkdir(mode=0o700, exist_ok=True)
    try:
        _spawn(live, environ)
    finally:
        # The session was not opened: remove the folder, so that it does not look like a session.
        if made and not live.journal.exists() and not live.running:
            shutil.rmtree(live.folder, ignore_errors=True)


async def wait(home: Home, session: str) -> None:
    """Return when no engine holds the session."""
    live = home.live(session)
    while live.running:  # noqa: ASYNC110  # a lock of another process has no event
        await asyncio.sleep(0.1)


def write_plan(live: LiveFiles, plan: SessionPlan) -> None:
    """Write `plan.json`, which an engine reads first."""
    write_whole(plan_file(live), msgspec.json.encode(plan) + b"\n", mode=0o600)


def plan_file(live: LiveFiles) -> Path:
    """Returns the path of a session's plan."""
    return live.folder / "plan.json"


def _refuse_finished(home: Home, session: str) -> None:
    # Imported here: they need git, and a start does not.
    from sessions import fold
    from sessions.catalog import journal_of
    from sessions.reconcile import resume as take_up

    try:
        finished = fold(journal_of(home, session).events).finished
    except NoSuchSession:
        return
    if finished and home.live(session).journal.exists():
        take_up(home, session).close()
    if finished:
        raise NothingToResume(session)


def _clear_dead_engine(live: LiveFiles) -> None:
    info = read_engine_info(live)
    if info is not None and info.host == socket.gethostname():
        Path(info.socket).unlink(missing_ok=True)
    live.engine.unlink(missing_ok=True)


def _require_judge() -> None:
    for package in ("torch", "triton"):
        if importlib.util.find_spec(package) is None:
            raise JudgeExtraMissing(
                f"{package} is not installed, so no candidate can be judged here; pip install 'wavedeck[judge]'"
            )


def _spawn(live: LiveFiles, environ: Mapping[str, str]) -> None:
    """Start the engine of a live folder and wait until it can be reached."""
    with live.log.open("ab") as log:
        begun = log.tell()
        # In a thread: an interrupt, which only the main thread gets, cannot lose an engine that has just started.
        starting = ThreadPoolExecutor(1, thread_name_prefix=f"start/{live.session}").submit(
            subprocess.Popen,
            # -P: a folder named `engine` in the current directory must not shadow the package.
            [sys.executable, "-P", "-m", ENGINE, str(live.folder)],
            cwd=live.folder.parent,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            process = starting.result()
            # Reaps the engine if it ends before this process.
            threading.Thread(target=process.wait, name=f"reaper/{live.session}", daemon=True).start()
            _wait_until_reachable(live, process, begun)
        except KeyboardInterrupt:
            # The session's name is not shown yet, so the person could not stop the engine later.
            process = starting.result()
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
    """Returns the error of an engine that ended at once; keeps its traceback and removes an empty session folder."""
    output = live.log.read_bytes()[begun:].decode(errors="replace").strip()
    last = (
        output.splitlines()[-1].strip()
        if output
        else f"the engine ended with exit code {code} and no message; is the disk of {live.folder} full?"
    )
    log = live.log
    if not live.journal.exists():
        if "Traceback" in output:
            crashes = live.folder.parent.parent / "crashes"
            crashes.mkdir(mode=0o700, exist_ok=True)
            log = crashes / f"{live.session}.log"
            log.write_text(output + "\n", encoding="utf-8")
        shutil.rmtree(live.folder, ignore_errors=True)
    tail = f"; the traceback is in {log}" if "Traceback" in output else ""
    return (UsageProblem if code == WRONG_USAGE else EngineDidNotStart)(f"{last}{tail}")
