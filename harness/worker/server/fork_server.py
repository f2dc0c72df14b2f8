"""The fork server: imports torch and triton once, runs no candidate code, and starts every worker process.

The nursery forks it, or starts it through `harness.linux.worker_start` with DESCRIPTOR and MODE in a clean environment.
DESCRIPTOR is its end of a sequenced-packet socket to the engine, MODE is `fork` or `exec`. In mode `exec`, for machines
where a fork after the imports is not safe, each worker is a fresh interpreter, which starts here in mode `worker`.
`TRITON_INTERPRET` in the environment decides whether the workers' triton interprets or compiles.
The server ends when the engine closes its end of the socket.
"""

from __future__ import annotations

import gc
import os
import platform
import select
import signal
import socket
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from harness.linux import syscalls
from harness.linux.foreign_files import remove
from harness.linux.worker_start import command
from harness.wire import limits
from harness.wire.channels.channel import ENCODER, Channel
from harness.wire.device import VISIBILITY_VARIABLES, Device
from harness.wire.messages.server import (
    SERVER_REPORTS,
    SERVER_REQUESTS,
    End,
    Ended,
    Ready,
    ServerReport,
    Spawn,
    Started,
    status_words,
)

from . import warden

PACKET_BYTES = 1 << 16
FOREIGN_ROLES = frozenset({"guest", "timer"})
"""Roles that may run the candidate's code, which may use a second stream."""
_QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS"
"""Hardware queues of a context. CUDA makes 8 by default; with 1 or 2, contexts start and end in half the time on a full node."""


@dataclass(slots=True)
class _Warden:
    """One warden, which has one worker."""

    pid: int
    end_by: float | None = None
    """Deadline of an `End` request; after it the warden is killed."""


class Server:
    """Serves the engine's requests, forwards the wardens' reports to the engine, and reaps wardens."""

    def __init__(self, control: socket.socket, *, forks: bool) -> None:
        self._control = control
        self._forks = forks
        self._wardens: dict[int, _Warden] = {}
        """Wardens not yet reaped, by the engine's number of the worker."""
        # Wardens report by the outbox, and signals write to the waker.
        self._inbox, self._outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker, self._inbox):
            end.setblocking(False)

    def serve(self) -> None:
        """Serve the engine's requests until it is gone; return when every worker has ended.

        Workers that do not end in time are killed, with all that they started.
        """
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        poller = select.poll()
        for end in (self._control, self._inbox, self._wake):
            poller.register(end, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _event in poller.poll(1000 if self._kill_overdue() else None)}
            if self._wake.fileno() in ready:
                self._wake.recv(4096)
            self._read_reports()
            self._reap()
            if self._control.fileno() in ready and not self._read_request():
                break
        for process in self._wardens.values():
            os.kill(process.pid, signal.SIGTERM)
        if not self._all_end_within(limits.END_S):
            warden.kill_tree()

    def _all_end_within(self, seconds: float) -> bool:
        """Wait for the wardens to end by themselves; returns whether all did."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    select.select([self._wake], [], [], 0.05)
            except ChildProcessError:
                return True
        return False

    def _read_request(self) -> bool:
        """Handle one request: start a worker, or ask its warden to end it. Returns `False` when the engine is gone."""
        data, descriptors, _flags, _address = socket.recv_fds(self._control, PACKET_BYTES, 4)
        if not data:
            return False
        match SERVER_REQUESTS.decode(data):
            case Spawn() as spawn:
                try:
                    self._start(spawn, descriptors)
                except OSError as error:  # e.g. the process limit; the other workers go on
                    lost = f"no process could be started: {error}"
                    self._send(Ended(worker=spawn.worker, status=9, leftover=0, killed=False, lost=lost))
            case End(number=worker):
                ending = self._wardens.get(worker)
                if ending is not None and ending.end_by is None:
                    ending.end_by = time.monotonic() + limits.END_S
                    os.kill(ending.pid, signal.SIGTERM)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start(self, spawn: Spawn, descriptors: list[int]) -> None:
        """Fork a warden, which forks the worker; a fresh interpreter, if forks are not safe. Raises `OSError`."""
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            folder = Path(spawn.scratch) if spawn.scratch else None
            try:
                warden.run(
                    lambda: (enter if self._forks else _enter_fresh)(spawn, descriptors),
                    started=lambda child: self._report(Started(worker=spawn.worker, pid=child)),
                    ended=lambda end: self._conclude(Ended(worker=spawn.worker, **end._asdict()), folder),
                    folder=folder,
                )
            finally:
                os._exit(os.EX_SOFTWARE)
        self._wardens[spawn.worker] = _Warden(pid)

    def _conclude(self, ended: Ended, folder: Path | None) -> None:
        """In a warden, after its tree has ended: remove the worker's folder, because the engine may be gone."""
        if folder is not None:
            remove(folder)
        self._report(ended)

    def _report(self, report: ServerReport) -> None:
        """In a warden: send a report to the server."""
        self._outbox.send(ENCODER.encode(report))

    def _read_reports(self) -> None:
        """Forward all reports of the wardens that have arrived to the engine."""
        while True:
            try:
                data = self._inbox.recv(PACKET_BYTES)
            except BlockingIOError:
                return
            report = SERVER_REPORTS.decode(data)
            assert not isinstance(report, Ready)
            if isinstance(report, Started):
                self._send(report)
            else:
                self._finish(report)

    def _reap(self) -> None:
        """Reap ended wardens. A warden that ended without a report was killed; its worker tree is killed too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._read_reports()
            for worker, ended in list(self._wardens.items()):
                if ended.pid == pid:
                    killed = ended.end_by is not None
                    overdue = killed and time.monotonic() > (ended.end_by or 0.0)  # `_kill_overdue` ended it
                    lost = "" if overdue else f"its warden ended ({status_words(status)})"
                    self._finish(Ended(worker=worker, status=9, leftover=0, killed=killed, lost=lost))
        self._kill_strays()

    def _kill_strays(self) -> None:
        """Kill every child that is not a known warden: it belonged to a warden that died."""
        wardens = {process.pid for process in self._wardens.values()}
        for pid in syscalls.children(os.getpid()):
            if pid not in wardens and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(pid, signal.SIGKILL)

    def _finish(self, ended: Ended) -> None:
        """Report the end of a worker and its warden to the engine, once."""
        if self._wardens.pop(ended.worker, None) is not None:
            self._send(ended)

    def _kill_overdue(self) -> bool:
        """Kill wardens past the deadline of their end; returns whether any end is awaited."""
        ending = [process for process in self._wardens.values() if process.end_by is not None]
        for process in ending:
            if time.monotonic() > (process.end_by or 0.0):
                os.kill(process.pid, signal.SIGKILL)
        return bool(ending)

    def _send(self, report: ServerReport) -> None:
        self._control.send(ENCODER.encode(report))


def _enter_fresh(spawn: Spawn, descriptors: list[int]) -> NoReturn:
    """In a worker: become a fresh interpreter, which reads the request from a memory file and calls `enter`."""
    request = os.memfd_create("spawn", 0)
    os.write(request, ENCODER.encode(spawn))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, True)
    arguments = map(str, (request, "worker", *descriptors))
    os.execv(sys.executable, command("harness.worker.server.fork_server", *arguments))


def enter(spawn: Spawn, descriptors: list[int]) -> NoReturn:
    """In a worker: take over its channel and output, close everything else, run its role, exit."""
    from .roles import ROLES

    status = 1
    try:
        end, output = descriptors
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        syscalls.close_all_but({end})
        if spawn.device is not None:
            show_alone(spawn.device)
            os.environ[_QUEUES] = str(2 if spawn.role in FOREIGN_ROLES else 1)
        sys.stdout = open(1, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115 (for life)
        sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115 (for life)
        ROLES[spawn.role](Channel(socket.socket(fileno=end)), spawn)
        status = 0
    except SystemExit as leave:
        status = leave.code if isinstance(leave.code, int) else 1 if leave.code else 0
    except BaseException:  # noqa: BLE001 (an uncaught exception would run the server's code in the child)
        traceback.print_exc()
        status = os.EX_SOFTWARE
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


def show_alone(device: Device) -> None:
    """Let this process see one GPU only. Call it before the GPU runtime starts: the runtime reads these variables once."""
    for names in VISIBILITY_VARIABLES.values():
        for name in names:
            os.environ.pop(name, None)
    variable, _, value = device.visibility.partition("=")
    os.environ[variable] = value


def import_all() -> Ready:
    """Import everything that workers need; returns the versions, and why a fork is not safe if it is not."""
    gc.disable()  # collecting garbage takes a seventh of the import time, and modules stay anyway
    import numpy
    import torch
    import triton

    from harness.worker.triton_hooks.versions import installed_language

    from . import roles

    _warm_up(compiling=not triton.knobs.runtime.interpret)
    problem = ""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        problem = "a GPU runtime is initialised by the import"
    if "judge" not in roles.ROLES:
        problem = "the roles are not complete"
    threads = syscalls.thread_count()
    if threads > 1 and not problem:
        problem = f"the imports leave {threads} threads behind"
    gc.freeze()
    gc.enable()
    return Ready(
        versions={
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "triton": triton.__version__,
            "numpy": numpy.__version__,
        },
        threads=threads,
        problem=problem,
        language=installed_language(),
    )


def _warm_up(*, compiling: bool) -> None:
    """Set up what Triton's first launch and compilation need: saves each worker up to a second. Failures do not matter."""
    from harness.sandbox import landlock
    from harness.worker.triton_hooks import warm

    landlock.common_rules(run_programs=compiling, gpu=False)
    try:
        warm.name_triton_by_version()
        warm.specialise_once()
        if compiling:
            warm.compile_once()
    except Exception:  # noqa: BLE001 -- a triton without this back end may raise anything
        traceback.print_exc()


def run(control: socket.socket, *, forks: bool) -> None:
    """Serve the engine until it is gone."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    ready = import_all() if forks else Ready(versions={}, threads=1)
    control.send(ENCODER.encode(msgspec.structs.replace(ready, pid=os.getpid())))
    Server(control, forks=forks).serve()


def main() -> None:
    """Run as a fork server or as a fresh worker; see the module."""
    descriptor, mode, *descriptors = sys.argv[1:]
    if mode == "worker":
        import_all()
        spawn = SERVER_REQUESTS.decode(os.pread(int(descriptor), PACKET_BYTES, 0))
        assert isinstance(spawn, Spawn)
        enter(spawn, [int(number) for number in descriptors])
    run(socket.socket(fileno=int(descriptor)), forks=mode == "fork")


if __name__ == "__main__":
    main()
