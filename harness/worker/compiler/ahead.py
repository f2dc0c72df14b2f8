"""Lists the kernels that a candidate launches, so that processes without foreign code compile them in parallel.

The worker, which holds the candidate, forks a scout. The scout calls the candidate's host code with stubs for compiled kernels.
It is a fork, so nothing that the host code does reaches the worker. Then it makes the Triton IR of each kernel and sends it to
the worker, which requests the binary from the engine.

Then the worker calls the host code as usual, and finds the binaries in its cache. It compiles every other kernel itself, so all
errors are the worker's own; a lost scout costs only time.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from harness.wire.channels.channel import ENCODER, Channel
from harness.wire.device import Target
from harness.wire.messages.compiler import NUMBERED_BINARIES, Binary, KernelIr, KernelWanted
from harness.wire.messages.guest import Alive
from harness.worker.candidate.serving import tell
from harness.worker.triton_hooks import cache_files
from harness.worker.triton_hooks.autotuning import policy
from harness.worker.triton_hooks.launches import handle_compilations
from harness.worker.triton_hooks.stages import Listed, end_at_ir, files_of
from harness.worker.triton_hooks.stub_driver import stub

from . import capture

MOST_KERNELS = 2048
HOST_S = 5
"""Wall time of the scout for the host code of all cases together."""
KERNEL_S = 60
"""Wall time of the scout for the Triton IR of one kernel."""
HOST_ENDED = b""
"""The scout's message after the host code."""
MOST_BYTES = 64 << 20
"""Largest message of the scout, which holds one kernel."""
_POLL_S = 0.2


class Line:
    """The line to the engine while one request is answered: requests binaries, and keeps them."""

    def __init__(self, channel: Channel, nonce: str) -> None:
        self._channel = channel
        self._nonce = nonce
        self._numbers = itertools.count()
        self._asked: dict[int, KernelIr] = {}
        """Kernels without an answer yet."""
        self._binaries: dict[KernelIr, Binary] = {}

    def alive(self) -> None:
        """Say that a config was compiled."""
        tell(self._channel, self._nonce, Alive())

    def ask(self, kernel: KernelIr) -> None:
        """Request a binary ahead, without waiting for it."""
        if kernel not in self._binaries and kernel not in self._asked.values():
            number = next(self._numbers)
            self._asked[number] = kernel
            tell(self._channel, self._nonce, KernelWanted(number, kernel))

    def fetch(self, kernel: KernelIr) -> Binary:
        """Return a binary, requested ahead or not; waits for the engine's answer.

        Raises `ChannelClosed` if the engine is gone.
        """
        self.ask(kernel)
        while kernel not in self._binaries:
            number, binary = NUMBERED_BINARIES.decode(self._channel.receive().payload)
            self._binaries[self._asked.pop(number)] = binary
        return self._binaries[kernel]


class _Kernel(msgspec.Struct, array_like=True, frozen=True):
    """A kernel that the scout found."""

    hash: str
    """Triton's name of the compiled kernel."""
    kernel: KernelIr
    options: str


_KERNELS: msgspec.msgpack.Decoder[_Kernel] = msgspec.msgpack.Decoder(_Kernel)


def compile_ahead(call: Callable[[], None], target: Target, folder: Path, line: Line) -> None:
    """Request what `call`, the host code of the candidate in `folder`, launches. Triton waits for each binary that it needs.

    Fills `capture.compile_logs`. An exception of `call` ends the scout's list of kernels and is no failure.
    """
    kernels: dict[str, _Kernel] = {}

    def look_up(kernel_hash: str) -> Mapping[str, bytes]:
        """Return the files of a kernel that the scout listed, when its binary has come; nothing for any other kernel."""
        listed = kernels.get(kernel_hash)
        if listed is None:
            return {}
        binary = line.fetch(listed.kernel)
        if binary.files:
            capture.compile_logs.setdefault(kernel_hash, (binary.log, binary.seconds))
        return files_of(listed.kernel, binary, folder, listed.options)

    cache_files.lookup = look_up
    with contextlib.suppress(OSError):  # no pipe or no process is available
        reader, writer = Pipe(duplex=False)
        with reader:
            with writer:
                scout = os.fork()
                if scout == 0:
                    _run_scout(call, target, folder, writer)
            # An alarm does not end an operator of torch, and host code may ignore it.
            limit_s, heard_s = 2.0 * HOST_S, time.monotonic()
            while len(kernels) < MOST_KERNELS and time.monotonic() - heard_s < limit_s:
                # A process that the host code started may keep the pipe open.
                if not reader.poll(_POLL_S):
                    if _has_ended(scout, os.WNOHANG):
                        return
                    continue
                heard_s = time.monotonic()
                try:
                    message = reader.recv_bytes(MOST_BYTES)
                    if message == HOST_ENDED:
                        limit_s = KERNEL_S
                        continue
                    listed = _KERNELS.decode(message)
                except (EOFError, ValueError):  # closed, or the host code wrote into the pipe
                    break
                kernels[listed.hash] = listed
                line.ask(listed.kernel)
        os.kill(scout, signal.SIGKILL)
        _has_ended(scout)


def _has_ended(child: int, options: int = 0) -> bool:
    try:
        return os.waitpid(child, options)[0] != 0
    except ChildProcessError:  # foreign code may ignore SIGCHLD, so that the kernel reaps children
        return True


# In the scout ----------------------------------------------------------------------------------------------------------


def _run_scout(call: Callable[[], None], target: Target, folder: Path, pipe: Connection) -> NoReturn:
    """List the kernels that `call` launches, send each to the worker by `pipe`, and end this process; see the module.

    First the host code runs with stubs for kernels, then each kernel's Triton IR is made. Alarms end both if they take too
    long.
    """
    try:
        signal.signal(signal.SIGALRM, _stop_host_code)
        signal.alarm(HOST_S)
        policy.progress = lambda: None
        _discard_output()
        makes = _list_kernels(target)
        with contextlib.suppress(BaseException):  # the worker meets the same exception again and reports it
            call()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        pipe.send_bytes(HOST_ENDED)
        end_at_ir(target, folder, lambda *listed: pipe.send_bytes(ENCODER.encode(_Kernel(*listed))))
        for make in makes.values():
            if capture.is_patched():
                break
            signal.alarm(KERNEL_S)
            with contextlib.suppress(
                Listed, Exception
            ):  # the worker compiles the kernel again and reports the error
                make()
    finally:
        os._exit(0)


def _stop_host_code(*_: object) -> None:
    """End the host code; the kernels listed so far are compiled. If the host code continues, a second alarm ends the scout."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(HOST_S)
    raise TimeoutError


def _discard_output() -> None:
    """The host code prints the same again in the worker."""
    sink = os.memfd_create("scout", os.MFD_CLOEXEC)
    for stream in (1, 2):
        os.dup2(sink, stream)


def _list_kernels(target: Target) -> dict[Any, Callable[[], Any]]:
    """Return what makes each kernel that a launch compiles from now on; the launch gets a stub."""
    makes: dict[Any, Callable[[], Any]] = {}

    def add_kernel(_: Any, key: Any, options: Any, make: Callable[[], Any]) -> Any:
        makes.setdefault(key, make)
        compiled = stub(target, vars(options), lambda *_, **__: None)
        compiled.hash = ""
        return compiled

    handle_compilations(add_kernel)
    return makes
