"""Parent of one worker: reaps its whole tree, grandchildren in sessions of their own included. Torch-free.

A warden is forked from the server and forks the worker. It is the subreaper of the worker's tree, so a process that
leaves the session or loses its parent comes back to it; when the worker ends, or when SIGTERM asks, it kills what is
left and reports. A warden that is killed itself takes the worker along (parent-death signal), and the server kills
what then comes back to the server.
"""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable
from typing import NoReturn

from . import linux

_WATCHED = {signal.SIGCHLD, signal.SIGTERM}


def run(
    worker: Callable[[], NoReturn], started: Callable[[int], None], ended: Callable[[int, int, bool], None]
) -> NoReturn:
    """Runs `worker` in a child until it ends, then exits 0.

    `started(pid)` and `ended(wait status, leftover processes, killed on request)` tell the server.
    """
    server = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    linux.prctl(linux.PR_SET_CHILD_SUBREAPER, 1)
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:
        os._exit(0)  # the server was gone before the signal was asked for
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_worker(warden, worker)
    started(pid)
    status, killed = _wait(pid)
    leftover = len(linux.children(warden))
    kill_tree()
    ended(status, leftover, killed)
    os._exit(0)


def kill_tree() -> None:
    """Kills and reaps every descendant; returns when there is none."""
    while True:
        for pid in linux.children(os.getpid()):
            os.kill(pid, signal.SIGKILL)  # not reaped yet, so the id is still its own
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _become_worker(warden: int, worker: Callable[[], NoReturn]) -> NoReturn:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(0)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    worker()


def _wait(worker: int) -> tuple[int, bool]:
    """The worker's wait status, and whether SIGTERM asked for its end. Reaps other children as they come."""
    killed = False
    while True:
        if signal.sigwait(_WATCHED) == signal.SIGTERM and not killed:
            killed = True
            os.kill(worker, signal.SIGKILL)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid == worker:
                return status, killed
