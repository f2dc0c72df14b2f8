"""The fork server: imports torch and triton once, computes nothing, and starts every worker from there.

Forked by the nursery, or started by it as `python -m harness.worker.server.fork_server DESCRIPTOR MODE`, with an environment built
from nothing, where DESCRIPTOR is its end of a sequenced-packet socket to the engine and MODE is `fork` or `exec`.
`TRITON_INTERPRET` in that environment decides what the workers' triton does. In mode `exec`, for machines where a fork after
the imports is not safe, each worker is a fresh interpreter that was started ahead of need. It ends when the engine's end of the
socket closes.
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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from harness.linux import syscalls
from harness.linux.folder_removal import remove
from harness.wire import limits
from harness.wire.channel import Channel
from harness.wire.device import VISIBILITY_VARIABLES, Device
from harness.wire.encoding import ENCODER
from harness.wire.server_messages import (
    SERVER_REPORTS,
    SERVER_REQUESTS,
    End,
    Ended,
    Ready,
    ServerReport,
    Spawn,
    Started,
)

from . import warden

PACKET_BYTES = 1 << 16
_SPARES = 2


@dataclass(slots=True)
class _Slot:
    """One warden and its worker."""

    warden: int
    worker: int | None
    """The engine's number; `None` for a spare that waits."""
    pid: int | None = None
    control: socket.socket | None = None
    """To a spare, for the request that it becomes."""
    folder: int | None = None
    """Pipe to a spare's warden, for the folder that it shall watch and remove."""
    end_by: float | None = None
    """When an asked-for end has taken too long."""

    def close_folder(self) -> None:
        """Nothing more to tell the warden."""
        if self.folder is not None:
            os.close(self.folder)
            self.folder = None


class _Folder:
    """In a warden: where its worker writes, which a spare's learns later than it starts."""

    def __init__(self, told: int) -> None:
        os.set_blocking(told, False)
        self._told = told
        self._path: Path | None = None

    def path(self) -> Path | None:
        """The folder; `None` where the worker has none, or none yet."""
        if self._path is None:
            try:
                name = os.read(self._told, PACKET_BYTES).decode()
            except BlockingIOError:
                return None
            self._path = Path(name) if name else None
        return self._path


class Server:
    """The loop: requests from the engine, reports from wardens, deaths of wardens."""

    def __init__(self, control: socket.socket, *, forks: bool) -> None:
        self._control = control
        self._forks = forks
        self._slots: dict[int, _Slot] = {}
        self._next_slot = 0
        self._inbox, self._outbox = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker, self._inbox):
            end.setblocking(False)

    def serve(self) -> None:
        """Returns when the engine is gone and every worker has ended."""
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        self._keep_spares()
        poller = select.poll()
        for end in (self._control, self._inbox, self._wake):
            poller.register(end, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _event in poller.poll(1000 if self._ending() else None)}
            if self._wake.fileno() in ready:
                self._wake.recv(4096)
            self._read_reports()
            self._reap()
            if self._control.fileno() in ready and not self._read_request():
                break
        for slot in self._slots.values():
            os.kill(slot.warden, signal.SIGTERM)
        if not self._all_end_within(limits.END_S):
            warden.kill_tree()

    def _all_end_within(self, seconds: float) -> bool:
        """Waits for the wardens to end by themselves; whether all did."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    select.select([self._wake], [], [], 0.05)
            except ChildProcessError:
                return True
        return False

    def _read_request(self) -> bool:
        """Takes one request; `False` when the engine is gone."""
        data, descriptors, _flags, _address = socket.recv_fds(self._control, PACKET_BYTES, 4)
        if not data:
            return False
        match SERVER_REQUESTS.decode(data):
            case Spawn() as spawn:
                self._spawn(spawn, descriptors)
            case End(worker=worker):
                for slot in self._slots.values():
                    if slot.worker == worker and slot.end_by is None:
                        slot.end_by = time.monotonic() + limits.END_S
                        os.kill(slot.warden, signal.SIGTERM)
        return True

    def _spawn(self, spawn: Spawn, descriptors: list[int]) -> None:
        if self._forks:
            self._start(spawn.worker, lambda: enter(spawn, descriptors), scratch=spawn.scratch)
        else:
            slot = next(slot for slot in self._slots.values() if slot.worker is None)
            assert slot.control is not None
            slot.worker = spawn.worker
            socket.send_fds(slot.control, [ENCODER.encode(spawn)], descriptors)
            slot.control.close()
            slot.control = None
            if slot.folder is not None:
                os.write(slot.folder, spawn.scratch.encode())
            slot.close_folder()
            if slot.pid is not None:
                self._tell(Started(worker=spawn.worker, pid=slot.pid))
            self._keep_spares()
        for descriptor in descriptors:
            os.close(descriptor)

    def _keep_spares(self) -> None:
        while not self._forks and sum(slot.worker is None for slot in self._slots.values()) < _SPARES:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

            def become_spare(end: socket.socket = theirs) -> NoReturn:
                os.set_inheritable(end.fileno(), True)
                os.execv(
                    sys.executable,
                    [sys.executable, "-m", "harness.worker.server.fork_server", str(end.fileno()), "spare"],
                )

            self._start(None, become_spare, control=ours)
            theirs.close()

    def _start(
        self,
        worker: int | None,
        body: Callable[[], NoReturn],
        *,
        control: socket.socket | None = None,
        scratch: str = "",
    ) -> None:
        number = self._next_slot
        self._next_slot += 1
        told, tell = os.pipe()
        os.write(tell, scratch.encode())
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            os.close(tell)
            folder = _Folder(told)
            try:
                warden.run(
                    body,
                    started=lambda child: self._report(Started(worker=number, pid=child)),
                    ended=lambda end: self._conclude(Ended(worker=number, **end._asdict()), folder.path()),
                    folder=folder.path,
                )
            finally:
                os._exit(os.EX_SOFTWARE)
        os.close(told)
        self._slots[number] = slot = _Slot(warden=pid, worker=worker, control=control, folder=tell)
        if control is None:
            slot.close_folder()

    def _conclude(self, ended: Ended, folder: Path | None) -> None:
        """In a warden, when the tree is gone: removes its folder, which nobody else does when the engine is gone."""
        if folder is not None:
            remove(folder)
        self._report(ended)

    def _report(self, report: ServerReport) -> None:
        """In a warden: to the server, which knows the engine's number for the slot."""
        self._outbox.send(ENCODER.encode(report))

    def _read_reports(self) -> None:
        while True:
            try:
                data = self._inbox.recv(PACKET_BYTES)
            except BlockingIOError:
                return
            report = SERVER_REPORTS.decode(data)
            assert not isinstance(report, Ready)
            slot = self._slots.get(report.worker)
            if slot is None:
                continue
            if isinstance(report, Started):
                slot.pid = report.pid
                if slot.worker is not None:
                    self._tell(Started(worker=slot.worker, pid=report.pid))
            else:
                del self._slots[report.worker]
                self._forget(slot, report)

    def _reap(self) -> None:
        """Collects ended wardens. One that ended without a report was killed: so is what it left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            self._read_reports()
            for number, slot in list(self._slots.items()):
                if slot.warden == pid:
                    del self._slots[number]
                    killed = slot.end_by is not None
                    self._forget(slot, Ended(worker=number, status=status or 9, leftover=0, killed=killed))
        self._kill_strays()

    def _kill_strays(self) -> None:
        """A child that is no warden of ours belonged to one that died."""
        wardens = {slot.warden for slot in self._slots.values()}
        for pid in syscalls.children(os.getpid()):
            if pid not in wardens and os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(pid, signal.SIGKILL)

    def _forget(self, slot: _Slot, ended: Ended) -> None:
        slot.close_folder()
        if slot.control is not None:
            slot.control.close()
        if slot.worker is not None:
            self._tell(msgspec.structs.replace(ended, worker=slot.worker))
        else:
            self._keep_spares()

    def _ending(self) -> bool:
        """Whether an end that was asked for is still due; kills the wardens whose time is up."""
        due = [slot for slot in self._slots.values() if slot.end_by is not None]
        for slot in due:
            if slot.end_by is not None and time.monotonic() > slot.end_by:
                os.kill(slot.warden, signal.SIGKILL)
        return bool(due)

    def _tell(self, report: ServerReport) -> None:
        self._control.send(ENCODER.encode(report))


def enter(spawn: Spawn, descriptors: list[int]) -> NoReturn:
    """In a worker: takes its channel and its output, closes all else, plays its role, exits."""
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
        sys.stdout = open(1, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115 (for life)
        sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115 (for life)
        ROLES[spawn.role](Channel(socket.socket(fileno=end)), spawn)
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1 if left.code else 0
    except BaseException:  # noqa: BLE001 (the child's main: what is not caught here would run the server's code)
        traceback.print_exc()
        status = os.EX_SOFTWARE
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status & 0xFF)


def show_alone(device: Device) -> None:
    """Lets this process see one GPU; before its runtime is initialised, which reads the variables then."""
    for names in VISIBILITY_VARIABLES.values():
        for name in names:
            os.environ.pop(name, None)
    variable, _, value = device.visibility.partition("=")
    os.environ[variable] = value


def import_all() -> Ready:
    """Imports what workers need and says what was found."""
    gc.disable()  # what is imported stays: looking for garbage is a seventh of the time
    import numpy
    import torch
    import triton

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
    )


def _warm_up(*, compiling: bool) -> None:
    """What the first launch and compilation set up is worth up to a second to every worker, and no worker depends on it."""
    from harness.sandbox import landlock
    from harness.worker.kit import warm

    landlock.common_rules(run_programs=compiling, gpu=False)
    try:
        warm.specialise_once()
        if compiling:
            warm.compile_once()
    except Exception:  # noqa: BLE001 -- whatever a triton without this back end raises
        traceback.print_exc()


def wait_as_spare(control: socket.socket) -> None:
    """In mode `spare`: becomes the worker that the first request asks for."""
    import_all()
    data, descriptors, _flags, _address = socket.recv_fds(control, PACKET_BYTES, 4)
    if data:
        spawn = SERVER_REQUESTS.decode(data)
        assert isinstance(spawn, Spawn)
        enter(spawn, descriptors)


def run(control: socket.socket, *, forks: bool) -> None:
    """Serves the engine until it is gone."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    ready = import_all() if forks else Ready(versions={}, threads=1)
    control.send(ENCODER.encode(msgspec.structs.replace(ready, pid=os.getpid())))
    Server(control, forks=forks).serve()


def main() -> None:
    """Entry of the process; see the module."""
    control = socket.socket(fileno=int(sys.argv[1]))
    if sys.argv[2] == "spare":
        wait_as_spare(control)
        return
    run(control, forks=sys.argv[2] == "fork")


if __name__ == "__main__":
    main()
