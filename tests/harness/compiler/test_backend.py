"""Protects the back-end process: each request has an answer, also if the fork that compiles it fails."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from harness.wire.channels.channel import ENCODER, Channel
from harness.wire.messages.compiler import BINARIES, Binary, KernelIr
from harness.wire.messages.server import Spawn
from harness.worker.compiler import backend


def test_a_fork_that_fails_gives_a_binary_without_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Binary:
        raise MemoryError

    monkeypatch.setattr(backend, "confine", lambda *_, **__: ())
    monkeypatch.setattr(backend, "_compile", fail)
    near, far = socket.socketpair()
    ours, theirs = Channel(near), Channel(far)
    ours.send(ENCODER.encode(KernelIr("text", "gfx942", "{}")))
    near.shutdown(socket.SHUT_WR)  # after the request, the back end sees the end and returns
    backend.main(
        theirs, Spawn(worker=1, role="backend", scratch=str(tmp_path), cpu_limit_s=1, device=None, sharers=1)
    )
    answer = ours.receive(deadline=time.monotonic() + 1)
    assert BINARIES.decode(answer.payload) == Binary()
    ours.close()
    theirs.close()
