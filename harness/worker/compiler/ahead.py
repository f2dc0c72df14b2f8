"""Compiles a candidate's kernels in parallel, before the compile worker compiles them itself. Saves time, decides nothing.

Three kinds of process take part:

- The worker (this process, which holds the candidate) forks one scout and reads the children's reports from pipes.
- The scout calls the candidate's host code with compilation replaced by stubs, which gives the list of kernels. It is a fork, so
  nothing that the host code does reaches the worker. Then it forks the children.
- Each child takes the next kernel from a shared queue, compiles it into Triton's cache folder, and reports its hash,
  log and time.

Then the worker calls the host code as usual and finds the reported kernels in the cache. It compiles every other kernel
itself, so all errors are the worker's own; a lost scout or child costs only time.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import msgspec

from harness.wire.device import Target
from harness.worker.triton_hooks import cache_files
from harness.worker.triton_hooks.autotuning import is_autotuned, policy
from harness.worker.triton_hooks.launches import handle_compilations
from harness.worker.triton_hooks.stub_driver import stub

from . import capture

MOST_CHILDREN = 24
WORTHWHILE = 3
"""Fewer kernels are left to the worker."""
FEW_CORES = 2
"""On so few cores, a scout and children save time only for autotuned kernels."""
MOST_KERNELS = 2048
"""Kernels for the children at most: the queue with their indices fits into a pipe's first page."""
HOST_S = 5
"""Wall time of the scout for the host code of all cases together."""
KERNEL_S = 60
"""Wall time of a child for one kernel."""
CHILD_LOST = 3
"""Exit status of a scout after a child failed."""

MOST_REPORT_BYTES = 64 << 20
_INDEX_BYTES = 2
_POLL_S = 0.2


class _Kernel(NamedTuple):
    """A kernel to compile."""

    name: str
    make: Callable[[], Any]
    tuned: bool
    """Whether it is one config of an autotuned kernel; the other configs are compiled even if it fails."""


class _Compiled(msgspec.Struct, array_like=True, frozen=True):
    """A child's report on one compiled kernel."""

    hash: str
    log: str
    seconds: float
    tuned: bool


_COMPILED: msgspec.msgpack.Decoder[_Compiled] = msgspec.msgpack.Decoder(_Compiled)


def compile_ahead(module: ModuleType, call: Callable[[], None], target: Target) -> None:
    """Compile in other processes what `call`, the host code of the candidate's `module`, launches; wait until they are done.

    Fills Triton's cache folder and `capture.compile_logs`. Does nothing if there are too few cores. An exception of `call` ends
    the scout's list of kernels and is no failure.
    """
    cores = min(len(os.sched_getaffinity(0)), MOST_CHILDREN)
    if cores < 2 or (cores <= FEW_CORES and not any(map(is_autotuned, vars(module).values()))):
        return
    with contextlib.ExitStack() as readers:
        try:
            with contextlib.ExitStack() as writers:
                pipes = []
                for _ in range(cores):
                    reader, writer = Pipe(duplex=False)
                    pipes.append((readers.enter_context(reader), writers.enter_context(writer)))
                scout = os.fork()
                if scout == 0:
                    _run_scout(call, target, [writer for _, writer in pipes])
        except OSError:  # no pipe or no process is available
            return
        if _read_reports([reader for reader, _ in pipes], scout) == CHILD_LOST:
            policy.progress()  # the time until the loss does not count against the config that is compiled next


# In the worker ---------------------------------------------------------------------------------------------------------


def _read_reports(pipes: Sequence[Connection], scout: int) -> int:
    """Use the children's reports until all pipes are closed or the scout has ended; returns the scout's exit status."""
    unread = set(pipes)
    while unread:
        ready = wait(unread, _POLL_S)
        if not ready and (status := _exit_status(scout, os.WNOHANG)) is not None:
            return status  # a process that the host code started may keep the pipes open
        for pipe in ready:
            assert isinstance(pipe, Connection)
            try:
                kernel = _COMPILED.decode(pipe.recv_bytes(MOST_REPORT_BYTES))
                cache_files.trust(kernel.hash)
            except (OSError, EOFError, ValueError):  # closed, or the host code wrote into the pipe
                unread.remove(pipe)
                continue
            capture.compile_logs.setdefault(kernel.hash, (kernel.log, kernel.seconds))
            if kernel.tuned:
                policy.progress()
    return _exit_status(scout) or 0


def _exit_status(child: int, options: int = 0) -> int | None:
    """The exit status of a child process, -1 if it is unknown; `None` while the child runs."""
    try:
        pid, status = os.waitpid(child, options)
    except ChildProcessError:  # foreign code may ignore SIGCHLD, so that the kernel reaps children
        return -1
    return os.waitstatus_to_exitcode(status) if pid else None


# In the scout ----------------------------------------------------------------------------------------------------------


def _run_scout(call: Callable[[], None], target: Target, pipes: Sequence[Connection]) -> NoReturn:
    status = 0
    try:
        signal.signal(signal.SIGALRM, _stop_host_code)
        signal.alarm(HOST_S)
        policy.progress = lambda: None
        _discard_output()
        kernels: list[_Kernel] = []
        _list_kernels(kernels, target)
        with contextlib.suppress(BaseException):  # the worker meets the same exception again and reports it
            call()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if len(kernels) >= WORTHWHILE:
            status = _fork_children(kernels[:MOST_KERNELS], pipes)
    finally:
        os._exit(status)


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


def _list_kernels(kernels: list[_Kernel], target: Target) -> None:
    """From now on, add each kernel that a launch would compile to `kernels`, once, and give the launch a stub."""
    seen = set()

    def add_kernel(function: Any, key: Any, options: Any, make: Callable[[], Any]) -> Any:
        if key not in seen:
            seen.add(key)
            kernels.append(_Kernel(function.fn.__name__, make, tuned=policy.launching))
        compiled = stub(target, vars(options), lambda *_, **__: None)
        compiled.hash = ""
        return compiled

    handle_compilations(add_kernel)


def _fork_children(kernels: Sequence[_Kernel], pipes: Sequence[Connection]) -> int:
    """Fork a child for each pipe, with one queue of kernels for all, and wait for them; returns the scout's exit status."""
    queue, queue_end = os.pipe()
    os.write(queue_end, b"".join(index.to_bytes(_INDEX_BYTES) for index in range(len(kernels))))
    os.close(queue_end)
    children = []
    for pipe in pipes[: len(kernels)]:
        try:
            child = os.fork()
        except OSError:  # the process limit: the children so far compile everything
            break
        if child == 0:
            _run_child(kernels, queue, pipe)
        children.append(child)
    for pipe in pipes:
        pipe.close()
    failed = [child for child in children if _exit_status(child)]
    return CHILD_LOST if failed else 0


# In a child ------------------------------------------------------------------------------------------------------------


def _run_child(kernels: Sequence[_Kernel], queue: int, pipe: Connection) -> NoReturn:
    status = 1
    try:
        while not capture.is_patched() and (index := os.read(queue, _INDEX_BYTES)):
            signal.alarm(KERNEL_S)
            kernel = kernels[int.from_bytes(index)]
            launch = capture.CompiledLaunch(kernel.name, 0)
            with contextlib.suppress(Exception):  # the worker compiles the kernel again and reports the error
                capture.compile_kernel(kernel.make, launch)
            if launch.compiled is not None:
                report = _Compiled(launch.compiled.hash, launch.log, launch.seconds, kernel.tuned)
                pipe.send_bytes(msgspec.msgpack.encode(report))
            elif not kernel.tuned:
                os.read(
                    queue, _INDEX_BYTES * MOST_KERNELS
                )  # empty the queue: the candidate has most likely failed
        status = 0
    finally:
        os._exit(status)
