"""One nursery for all pools that a test process opens: each pool would import torch again, for 1.5 s of CPU time."""

from __future__ import annotations

import atexit
import itertools
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.linux.process_environment import PROJECT_ROOT
from harness.linux.worker_start import command
from harness.processes.starting.judge_python import OUR_PYTHON, JudgePython
from harness.processes.starting.nursery import Nursery


class _Shared:
    """The process, which ends with this one; it starts when it is first needed, and again if it is lost."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self.numbers = itertools.count(step=1000)
        """The first number of each pool's servers: the process knows servers by number."""

    def connect(self) -> socket.socket:
        """Return one more end of its socket."""
        if self._process is None or self._process.poll() is not None or self._control is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._process = subprocess.Popen(
                    command("harness.worker.server.nursery", str(theirs.fileno()), python=OUR_PYTHON.path),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    env=OUR_PYTHON.environment,
                    cwd=PROJECT_ROOT,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            self._control = ours
        control = self._control.dup()
        control.setblocking(False)
        return control

    def close(self) -> None:
        """End the process. All pools were closed before."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.kill()
            self._process.wait()


_SHARED = _Shared()
atexit.register(_SHARED.close)


@contextmanager
def one_nursery() -> Iterator[None]:
    """Let all nurseries of Wavedeck's own Python be the same process. Tests of nurseries themselves go without."""
    begin, launch = Nursery.__init__, Nursery._launch

    def begin_apart(nursery: Nursery, python: JudgePython = OUR_PYTHON) -> None:
        begin(nursery, python)
        nursery._numbers = next(_SHARED.numbers)

    async def connect(nursery: Nursery) -> None:
        if nursery.python != OUR_PYTHON:
            await launch(nursery)
            return
        await nursery.close()
        nursery._control = _SHARED.connect()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Nursery, "__init__", begin_apart)
        patch.setattr(Nursery, "_launch", connect)
        yield
