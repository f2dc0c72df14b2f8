"""The warden: parent of one worker, reaps the worker's whole process tree. Torch-free.

The fork server forks the warden, and the warden forks the worker. The warden is the subreaper of the tree: a process that
loses its parent or leaves the session becomes the warden's child. When the worker ends, or on SIGTERM, the warden kills
the rest of the tree and reports. A few times a second it counts the tree's processes and the bytes in the worker's folder,
and ends a worker with too many. The kernel's own limits do not hold for root, and none limits a folder.
If the warden itself is killed, the kernel kills the worker (parent-death signal) and the server kills the rest.

`python -m harness.worker.server.warden FOLDER COMMAND...` runs a command under a warden, with the limits of a guest. The
tree also ends if the caller ends. It exits with the command's status, or 128 and the number of the signal that ended it.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from harness.linux import syscalls
from harness.wire import limits

_WATCHED = {signal.SIGCHLD, signal.SIGTERM}
_REAP_S = 0.001
"""Wait for killed processes to become reapable."""


class ChildEnd(NamedTuple):
    """How a worker ended."""

    status: int
    """The status from `os.waitpid`."""
    leftover: int
    killed: bool
    why: str
    """The limit that the worker exceeded, so that its warden ended it; else empty."""


def run(
    worker: Callable[[], NoReturn],
    started: Callable[[int], None],
    ended: Callable[[ChildEnd], None],
    folder: Path | None,
    *,
    most_processes: int = limits.PROCESSES,
) -> NoReturn:
    """Run `worker` in a child until it ends, then exit 0.

    `started(pid)` and `ended(end)` report to the server. `folder` is the worker's folder, if it has one.
    """
    server = os.getppid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != server:
        os._exit(0)  # the server died before the parent-death signal was set
    warden = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become_worker(warden, worker)
    started(pid)
    status, killed, why = _wait(pid, folder, most_processes)
    leftover = len(syscalls.children(warden))
    kill_tree()
    ended(ChildEnd(status, leftover, killed, why))
    os._exit(0)


def kill_tree() -> None:
    """Kill and reap every descendant; returns when there is none.

    Killing a whole process group leaves no time for a fork to escape. A tree that keeps starting new groups also ends:
    each round kills more processes than the tree can start in that time.
    """
    while True:
        descendants = syscalls.descendants(os.getpid())
        groups = set()
        for pid in descendants:
            with suppress(ProcessLookupError):
                groups.add(os.getpgid(pid))
        for group in groups - {os.getpgrp()}:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        for pid in descendants:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:
            return
        time.sleep(_REAP_S)


def _become_worker(warden: int, worker: Callable[[], NoReturn]) -> NoReturn:
    """Turn this fork into the worker: it dies with its warden, leads its own session, and gets default signals; never returns."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != warden:
        os._exit(0)
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, set())
    worker()


def _wait(worker: int, folder: Path | None, most_processes: int) -> tuple[int, bool, str]:
    """Returns the worker's wait status, whether SIGTERM ended it, and the limit it exceeded. Reaps other processes."""
    killed, why = False, ""
    checked_at = time.monotonic()
    while True:
        received = signal.sigtimedwait(_WATCHED, limits.WATCH_S)
        if received is not None and received.si_signo == signal.SIGTERM and not killed and _runs(worker):
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
        if time.monotonic() - checked_at > limits.WATCH_S:
            why = why or excess(syscalls.descendants(os.getpid()), folder, most_processes)
            if why:
                os.kill(worker, signal.SIGKILL)
            checked_at = time.monotonic()


def _runs(worker: int) -> bool:
    """Return False if the worker has ended by itself, though it is not reaped yet."""
    return os.waitid(os.P_PID, worker, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def excess(processes: tuple[int, ...], folder: Path | None, most_processes: int = limits.PROCESSES) -> str:
    """Returns the limit that a tree or its folder exceeds, in words; empty if none."""
    if len(processes) > most_processes:
        return f"more than {most_processes} processes"
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
            return f"more than {limits.memory_words(limits.SCRATCH_BYTES)} in its folder"
    return ""


def main() -> NoReturn:
    """Run the command of the arguments to its end."""
    folder, *command = sys.argv[1:]
    run(lambda: _become(command), lambda _pid: None, _exit, Path(folder))


def _become(command: list[str]) -> NoReturn:
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"error: {command[0]} does not start: {error.strerror}\n".encode())
        os._exit(127)


def _exit(end: ChildEnd) -> NoReturn:
    if end.why:
        os.write(2, f"error: it was ended: {end.why}\n".encode())
    status = os.waitstatus_to_exitcode(end.status)
    os._exit(status if status >= 0 else 128 - status)


if __name__ == "__main__":
    main()
