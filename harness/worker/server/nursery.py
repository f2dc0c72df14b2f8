"""The nursery: imports torch once, and forks the fork servers from there before they import triton, each in its own way.

Triton takes `TRITON_INTERPRET` at its import and for good; torch, most of what a server imports, does not care. Started by
the engine as `python -m harness.worker.server.nursery DESCRIPTOR`, its end of a sequenced-packet socket. It computes nothing,
starts no worker, and ends when the engine's end is closed and its servers are gone; they end with it.
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
from harness.wire import limits
from harness.wire.nursery_messages import NURSERY_REQUESTS, Bear, Kill

from . import fork_server


class Nursery:
    """The loop: requests from the engine, deaths of servers."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._environment = dict(os.environ)
        """Before torch adds to it."""
        self._servers: dict[int, int] = {}
        """Process ids of those that were not reaped, by the engine's number."""
        self._shares: bool | None = None
        """Whether a server may be forked; `None` before it was tried."""
        self._wake, self._waker = socket.socketpair()
        for end in (self._wake, self._waker):
            end.setblocking(False)

    def serve(self) -> None:
        """Returns when the engine is gone, and the servers are gone or had their time."""
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
        deadline = time.monotonic() + 2 * limits.END_S  # a server gives its wardens one of them
        while self._servers and (left := deadline - time.monotonic()) > 0:
            select.select([self._wake], [], [], left)
            self._reap()

    def _reap(self) -> None:
        try:
            self._wake.recv(4096)
        except BlockingIOError:
            return
        for number, pid in list(self._servers.items()):
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self._servers[number]

    def _read_request(self) -> bool:
        """Takes one request; `False` when the engine is gone."""
        data, descriptors, _flags, _address = socket.recv_fds(self._control, fork_server.PACKET_BYTES, 4)
        if not data:
            return False
        match NURSERY_REQUESTS.decode(data):
            case Bear() as bear:
                try:
                    self._servers[bear.number] = self._bear(bear, *descriptors)
                except OSError as error:  # as where no process can be started; the server's end closes
                    os.write(descriptors[1], str(error).encode())
            case Kill(number=number):
                if number in self._servers:
                    os.kill(self._servers[number], signal.SIGKILL)
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _bear(self, bear: Bear, end: int, complaints: int) -> int:
        """The new server's process id."""
        if self._shares is None and bear.forks:
            self._shares = _import_what_servers_share()
        if bear.forks and self._shares:
            pid = os.fork()
            if pid == 0:
                _become_server(bear, end, complaints)
            return pid
        os.set_inheritable(end, True)
        mode = "fork" if bear.forks else "exec"
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", fork_server.__name__, str(end), mode],
            self._environment | _interpreting(bear),
            file_actions=[(os.POSIX_SPAWN_DUP2, complaints, 2)],
            setsid=True,
        )


def _interpreting(bear: Bear) -> dict[str, str]:
    return {INTERPRET: "1"} if bear.interpret else {}


def _import_what_servers_share() -> bool:
    """Whether it can be forked: what starts threads cannot, and triton is not to be among it."""
    gc.disable()
    try:
        import numpy as numpy
        import torch as torch
    except Exception:  # noqa: BLE001 -- whatever a broken torch raises: the server imports it again, and tells
        return False
    gc.freeze()
    return "triton" not in sys.modules and syscalls.thread_count() == 1


def _become_server(bear: Bear, end: int, complaints: int) -> NoReturn:
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
    except BaseException:  # noqa: BLE001 (the child's main: what is not caught here would run the nursery's code)
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Entry of the process; see the module."""
    syscalls.keep_undumpable()
    Nursery(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
