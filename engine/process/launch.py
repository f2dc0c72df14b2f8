"""Starts and resumes engine processes, and waits for their end; used by the command line."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import msgspec

from engine.errors import EngineDidNotStart, UsageProblem
from engine.keys import environment_with_keys, without_secrets
from engine.methods import require_method
from engine.plan.plan import SessionPlan, resolve
from engine.plan.request import RunPlan
from harness.processes.starting.judge_python import OUR_PYTHON
from sessions.engine_info import read_engine_info
from sessions.errors import NoSuchSession, NothingToResume, SessionBusy
from sessions.files import write_whole
from sessions.home import Home, SessionFiles
from sessions.home_access import require_private
from suites.privacy import make_private_folder

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
    engine = prepare(plan, home, environ=environ)
    engine.begin_and_wait()
    return engine.session


def prepare(plan: RunPlan, home: Home, *, environ: Mapping[str, str] | None = None) -> EngineStart:
    """Check a plan and write it, as `start`; returns its engine, which has not begun."""
    environ = environment_with_keys() if environ is None else environ
    _require_judge(plan.python)
    return prepare_checked(resolve(plan, home=home, environ=environ), home, environ=environ)


def prepare_checked(
    checked: SessionPlan, home: Home, *, environ: Mapping[str, str] | None = None
) -> EngineStart:
    """Write a checked plan; returns its engine, which has not begun."""
    environ = environment_with_keys() if environ is None else environ
    _require_judge(checked.python)
    require_private(home)
    home.ensure()
    live = home.files(checked.session)
    live.folder.mkdir(mode=0o700)
    write_plan(live, checked)
    return EngineStart(live, environ)


def resume(home: Home, session: str, *, environ: Mapping[str, str] | None = None) -> None:
    """Start an engine that continues a session (its full name); returns when the engine can be reached.

    Raises `SessionBusy` if an engine has the session, `ForeignSession` if another home made it, `NothingToResume` if it is
    finished, else as `start`.
    A finished session that was not yet moved to the store is moved there first.
    """
    # Imported here: it needs git, and a start does not.
    from sessions.catalog import require_trust

    environ = environment_with_keys() if environ is None else environ
    require_private(home)
    home.ensure()
    live = home.files(session)
    if live.running:
        raise SessionBusy(session)
    require_trust(home, session)
    _require_judge(_python_of_unfinished(home, session))
    _clear_dead_engine(live)
    made = not live.folder.exists()
    live.folder.mkdir(mode=0o700, exist_ok=True)
    try:
        EngineStart(live, environ).begin_and_wait()
    finally:
        # The session was not opened: remove the folder, so that it does not look like a session.
        if made and not live.has_journal and not live.running:
            shutil.rmtree(live.folder, ignore_errors=True)


def write_plan(live: SessionFiles, plan: SessionPlan) -> None:
    """Write `plan.json`, which an engine reads first."""
    write_whole(live.plan, msgspec.json.encode(plan) + b"\n", mode=0o600)


def _python_of_unfinished(home: Home, session: str) -> str:
    """Returns the judge's interpreter of a session; empty if it is Wavedeck's own.

    Raises `NothingToResume`, or `UsageProblem` if the session's method is gone.
    """
    from sessions.catalog import session_state
    from sessions.store.reconcile import resume as take_up

    try:
        state = session_state(home, session)
    except NoSuchSession:
        return ""
    if state.finished and home.files(session).journal.exists():
        take_up(home, session).close()
    if state.finished:
        raise NothingToResume(session)
    if state.started is None:
        return ""
    require_method(state.started.method, session)
    return state.started.python


def _require_judge(python: str) -> None:
    if not python:  # a person's interpreter is checked by `resolve`, and by its engine
        OUR_PYTHON.require_judge()


def _clear_dead_engine(live: SessionFiles) -> None:
    info = read_engine_info(live)
    if info is not None and info.host == socket.gethostname():
        Path(info.socket).unlink(missing_ok=True)
    live.engine.unlink(missing_ok=True)


class EngineStart:
    """The start of the engine of a session's folder, in a thread.

    An interrupt, which only the main thread gets, cannot lose an engine that has just started.
    """

    def __init__(self, live: SessionFiles, environ: Mapping[str, str]) -> None:
        self.session = live.session
        self._live = live
        self._environ = dict(environ)
        self._process: Future[tuple[subprocess.Popen[bytes], int]] | None = None
        self._ready: Future[None] | None = None

    def begin(self) -> None:
        """Begin; returns at once."""
        thread = ThreadPoolExecutor(1, thread_name_prefix=f"start/{self.session}")
        self._process = process = thread.submit(self._spawn)
        self._ready = thread.submit(lambda: self._wait_until_reachable(*process.result()))
        thread.shutdown(wait=False)

    def begin_and_wait(self) -> None:
        """Begin, and return when the engine can be reached; an interrupt ends the engine."""
        try:
            self.begin()
            self.wait()
        except KeyboardInterrupt:
            # The session's name is not shown yet, so the person could not stop the engine later.
            self.cancel()
            raise

    @property
    def is_done(self) -> bool:
        """True if the engine can be reached, or did not start."""
        return self._ready is not None and self._ready.done()

    @property
    def has_failed(self) -> bool:
        """True if the engine did not start; `wait` raises the reason."""
        return self._ready is not None and self._ready.done() and self._ready.exception() is not None

    def wait(self) -> None:
        """Return when the engine can be reached; raises as `start` if it did not start."""
        if self._ready is not None:
            self._ready.result()

    def cancel(self) -> None:
        """End the engine; nothing is left of a session that recorded nothing."""
        if self._process is not None:
            process, _ = self._process.result()
            process.terminate()
            process.wait()
        if not self._live.has_journal:
            shutil.rmtree(self._live.folder, ignore_errors=True)

    def _spawn(self) -> tuple[subprocess.Popen[bytes], int]:
        """Returns the process, and the size of the engine's log before it."""
        environ, secrets = without_secrets(self._environ)
        with self._live.log.open("ab") as log:
            begun = log.tell()
            process = subprocess.Popen(
                # -P: a folder named `engine` in the current directory must not shadow the package.
                [sys.executable, "-P", "-m", ENGINE, str(self._live.folder)],
                cwd=self._live.folder.parent,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:  # an engine that has already ended reads nothing
            process.stdin.write(secrets)
        # Reaps the engine if it ends before this process.
        threading.Thread(target=process.wait, name=f"reaper/{self.session}", daemon=True).start()
        return process, begun

    def _wait_until_reachable(self, process: subprocess.Popen[bytes], begun: int) -> None:
        live = self._live
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


def _did_not_start(live: SessionFiles, begun: int, code: int) -> Exception:
    """Returns the error of an engine that ended at once; keeps its traceback and removes an empty session folder."""
    if not live.log.exists():
        return NothingToResume(live.session)  # it was only to be put away
    output = live.log.read_bytes()[begun:].decode(errors="replace").strip()
    last = (
        output.splitlines()[-1].strip()
        if output
        else f"the engine ended with exit code {code} and no message; is the disk of {live.folder} full?"
    )
    log = live.log
    if not live.has_journal:
        if "Traceback" in output:
            crashes = live.folder.parent.parent / "crashes"
            make_private_folder(crashes)
            log = crashes / f"{live.session}.log"
            log.write_text(output + "\n", encoding="utf-8")
        shutil.rmtree(live.folder, ignore_errors=True)
    tail = f"; the traceback is in {log}" if "Traceback" in output else ""
    return (UsageProblem if code == WRONG_USAGE else EngineDidNotStart)(f"{last}{tail}")
