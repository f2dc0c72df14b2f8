"""Protects a fork server, and the workers under it, when the kernel refuses a process."""

from __future__ import annotations

import socket
import subprocess
import sys

from harness.wire.channels.channel import ENCODER
from harness.wire.messages.server import SERVER_REPORTS, Ended, ServerReport, Spawn, Started

FIRST_FORK_FAILS = """
import errno, os, socket, sys
from harness.worker.server.fork_server import Server

fork = os.fork

def refuse():
    os.fork = fork
    raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

os.fork = refuse
Server(socket.socket(fileno=int(sys.argv[1])), forks=True).serve()
"""


def test_refused_fork_ends_one_worker_and_not_the_server() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    server = subprocess.Popen(
        [sys.executable, "-c", FIRST_FORK_FAILS, str(theirs.fileno())], pass_fds=[theirs.fileno()]
    )
    theirs.close()

    def spawn(worker: int) -> ServerReport:
        end, output = socket.socketpair()
        request = Spawn(worker=worker, role="self-test", scratch="", cpu_limit_s=60)
        socket.send_fds(ours, [ENCODER.encode(request)], [end.fileno(), output.fileno()])
        end.close()
        output.close()
        data = ours.recv(1 << 16)
        assert data, "the server ended"
        return SERVER_REPORTS.decode(data)

    with server, ours:
        refused = spawn(1)
        assert isinstance(refused, Ended)
        assert (refused.worker, refused.killed) == (1, False)
        assert "Resource temporarily unavailable" in refused.lost
        started = spawn(2)
        assert isinstance(started, Started)
        assert started.worker == 2
