"""Parent of one worker: reaps its whole tree, grandchildren in sessions of their own included. Torch-free.

A warden is forked from the server and forks the worker. It is the subreaper of the worker's tree, so a process that
leaves the session or loses its parent comes back to it; when the worker ends, or when SIGTERM asks, it kills what is
left and reports. A few times a second it counts the tree's processes and what its folder holds, and ends a worker that
has too much of either: limits of the kernel do not hold where root's user cannot be changed, and none holds a folder.
A warden that is killed itself takes the worker along (parent-death signal), and the server kills what then comes back
to the server.
"""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

from harness.linux import syscalls
from harness.wire import limits

_WATCHED = {signal.SIGCHLD, signal.SIGTERM}
_REAP_S = 0.001
"""For killed processes to become reapable."""


class End(NamedTuple):
    """How a worker ended."""

    status: int
    """As `os.waitpid` gives it."""
    leftover: int
    killed: bool
    why: str
    """Of which it had too much, so that its warden ended it; empty when that is not so."""


def run(
    worker: Callable[[], NoReturn],
    started: Callable[[int], None],
    ended: Callable[[End], None],
    folder: Callable[[], Path | None],
) -> NoReturn:
    """Runs `worker` in a child until it ends, then exits 0.

    `started(pid)` and `ended(end)` tell the server; `folder()` is where the worker writes, once that is known.
    """
    server = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:
        os._exit(0)  # the server was gone before the signal was asked for
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_worker(warden, worker)
    started(pid)
    status, killed, why = _wait(pid, folder)
    leftover = len(syscalls.children(warden))
    kill_tree()
    ended(End(status, leftover, killed, why))
    os._exit(0)


def kill_tree() -> None:
    """Kills and reaps every descendant; returns when there is none.

    Groups are killed whole, which no fork escapes; a tree of ever new groups ends because each round kills more than
    its share of the processor lets it start.
    """
    me = os.getpid()
    while True:
        below = syscalls.descendants(me)
        for group in {group for group in map(_group, below) if group not in (None, os.getpgrp())}:
            _kill(os.killpg, group)
        for pid in below:
            _kill(os.kill, pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(_REAP_S)


def _become_worker(warden: int, worker: Callable[[], NoReturn]) -> NoReturn:
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(0)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    worker()


def _wait(worker: int, folder: Callable[[], Path | None]) -> tuple[int, bool, str]:
    """The worker's wait status, whether SIGTERM asked for its end, and of what it had too much. Reaps others."""
    killed, why = False, ""
    looked = time.monotonic()
    while True:
        woken = signal.sigtimedwait(_WATCHED, limits.WATCH_S)
        if woken is not None and woken.si_signo == signal.SIGTERM and not killed:
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
                return status, killed, why
        if time.monotonic() - looked > limits.WATCH_S:
            why = why or excess(syscalls.descendants(os.getpid()), folder())
            if why:
                os.kill(worker, signal.SIGKILL)
            looked = time.monotonic()


def excess(processes: tuple[int, ...], folder: Path | None) -> str:
    """Of what a tree has too much, in words; empty when it has not."""
    if len(processes) > limits.PROCESSES:
        return f"more than {limits.PROCESSES} processes"
    size = count = 0
    for entry in syscalls.entries(folder) if folder is not None else ():
        count += 1
        if len(os.fsencode(entry.path)) > limits.SCRATCH_PATH_BYTES:
            return "folders nested too deep in its folder"
        try:
            size += entry.stat(follow_symlinks=False).st_blocks * 512
        except FileNotFoundError:
            continue
        if count > limits.SCRATCH_FILES:
            return f"more than {limits.SCRATCH_FILES} files in its folder"
        if size > limits.SCRATCH_BYTES:
            return f"more than {limits.SCRATCH_BYTES >> 20} MiB in its folder"
    return ""


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def _kill(kill: Callable[[int, int], None], number: int | None) -> None:
    if number is not None:
        try:
            kill(number, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended meanwhile
