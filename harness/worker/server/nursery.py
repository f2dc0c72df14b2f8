"""The nursery: imports torch once and forks the fork servers, before any of them imports triton.

Triton reads `TRITON_INTERPRET` once, at its import; torch, the larger part of a server's imports, does not depend on it.
The engine starts the nursery through `harness.linux.worker_start`, with a DESCRIPTOR: its end of a sequenced-packet socket.
The nursery starts no worker. It ends when the engine closes its end and the servers, which then end too, are gone.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from typing import NoReturn

from harness.linux import syscalls
from harness.linux.process_environment import INTERPRET
from harness.linux.worker_start import command
from harness.wire import limits
from harness.wire.messages.server import NURSERY_REQUESTS, Bear, End

from . import fork_server


class Nursery:
    """Serves the engine's requests for fork servers, and reaps servers."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._environment = dict(os.environ)
        """Saved before torch adds variables."""
        self._servers: dict[int, int] = {}
        """Process ids of servers not yet reaped, by the engine's number."""
        self._can_fork: bool | None = None
        """Whether servers can be forked from here; `None` before the shared import."""
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker):
            end.setblocking(False)

    def serve(self) -> None:
        """Serve until the engine is gone; then wait a limited time for the servers to end."""
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        poller = select.poll()
        for end in (self._control, self._wake):
            poller.register(end, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _event in poller.poll()}
            if self._wake.fileno() in ready:
                self._reap()
            if self._control.fileno() in ready and not self._read_request():
                break
        deadline = time.monotonic() + 2 * limits.END_S  # a server waits END_S for its wardens
        while self._servers and (wait_s := deadline - time.monotonic()) > 0:
            select.select([self._wake], [], [], wait_s)
            self._reap()

    def _reap(self) -> None:
        """Reap the fork servers that have ended, after a signal."""
        try:
            self._wake.recv(4096)
        except BlockingIOError:
            return
        for number, pid in list(self._servers.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self._servers[number]

    def _read_request(self) -> bool:
        """Handle one request: fork a server, or kill one. Returns `False` when the engine is gone."""
        data, descriptors, _flags, _address = socket.recv_fds(self._control, fork_server.PACKET_BYTES, 4)
        if not data:
            return False
        match NURSERY_REQUESTS.decode(data):
            case Bear() as bear:
                try:
                    self._servers[bear.number] = self._start_server(bear, *descriptors)
                except OSError as error:  # e.g. the process limit; the engine sees the server's socket close
                    os.write(descriptors[1], str(error).encode())
            case End(number=number):
                if number in self._servers:
                    os.kill(self._servers[number], signal.SIGKILL)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _start_server(self, bear: Bear, end: int, complaints: int) -> int:
        """Start a fork server; returns its process id. Its standard error goes to the pipe `complaints`."""
        if self._can_fork is None and bear.forks:
            self._can_fork = _import_shared()
        if bear.forks and self._can_fork:
            pid = os.fork()
            if pid == 0:
                _become_server(bear, end, complaints)
            return pid
        os.set_inheritable(end, True)
        mode = "fork" if bear.forks else "exec"
        return os.posix_spawn(
            sys.executable,
            command(fork_server.__name__, str(end), mode),
            self._environment | _interpreting(bear),
            file_actions=[(os.POSIX_SPAWN_DUP2, complaints, 2)],
            setsid=True,
        )


def _interpreting(bear: Bear) -> dict[str, str]:
    return {INTERPRET: "1"} if bear.interpret else {}


def _import_shared() -> bool:
    """Import torch; returns whether servers can be forked: not if the import started threads or imported triton."""
    gc.disable()
    try:
        import numpy as numpy
        import torch as torch
    except Exception:  # noqa: BLE001 -- a server imports torch again and reports the error
        return False
    gc.freeze()
    return "triton" not in sys.modules and syscalls.thread_count() == 1


def _become_server(bear: Bear, end: int, complaints: int) -> NoReturn:
    """Turn this fork of the nursery into a fork server, which serves the line `end`; never returns.

    Prints go to `complaints`.
    """
    status = os.EX_SOFTWARE
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(complaints, 2)
        syscalls.close_all_but({end})
        os.environ.update(_interpreting(bear))
        fork_server.run(socket.socket(fileno=end), forks=True)
        status = 0
    except BaseException:  # noqa: BLE001 (an uncaught exception would run the nursery's code in the child)
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Run the nursery; see the module."""
    syscalls.keep_undumpable()
    Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
