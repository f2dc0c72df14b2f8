"""
Compiles a candidate's kernels in parallel, before the compile worker compiles them itself. Saves time, decides nothing.

Three kinds of process take part:

- The worker (this process, which holds the candidate) forks one scout and reads the children's reports from pipes.
- The scout calls the candidate's host code with compilation replaced by stubs, which gives the list of kernels. It is a fork, so
  nothing that the host code does reaches the worker. Then it forks the children.
- Each child takes the next kernel from a shared queue, compiles it into Triton's cache folder, and reports its hash,
  log and time.

Then the worker calls the host code as usual and finds the reported kernels in the cache. It compiles every other kernel
itself, so all errors are the worker's own; a lost scout or child costs only time.
Uses internals of Triton's launcher (3.6 and 3.7).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple, NoReturn

import msgspec
from triton.runtime import jit
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import KernelInterface

from harness.wire.device import Target
from harness.worker.kit.stub_kernel import stub

from . import cache_files, capture

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

_CHUNK = 1 << 16
_INDEX_BYTES = 2
_SIZE_BYTES = 4
_POLL_S = 0.2
reporting = SimpleNamespace(progress=lambda: None)
"""`progress` is called after each compiled config of an autotuned kernel."""


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
    """
    Compile in other processes what `call`, the host code of the candidate's `module`, launches; wait until they are done.

    Fills Triton's cache folder and `capture.compile_logs`. Does nothing if there are too few cores. An exception of `call` ends
    the scout's list of kernels and is no failure.
    """
    cores = min(len(os.sched_getaffinity(0)), MOST_CHILDREN)
    if cores < 2 or (cores <= FEW_CORES and not _has_autotuned_kernel(module)):
        return
    with contextlib.ExitStack() as readers:
        try:
            with contextlib.ExitStack() as writers:
                pipes = []
                for _ in range(cores):
                    pipes.append(os.pipe())
                    readers.callback(os.close, pipes[-1][0])
                    writers.callback(os.close, pipes[-1][1])
                scout = os.fork()
                if scout == 0:
                    _run_scout(call, target, [write_end for _, write_end in pipes])
        except OSError:  # no pipe or no process is available
            return
        if _read_reports([read_end for read_end, _ in pipes], scout) == CHILD_LOST:
            reporting.progress()  # the time until the loss does not count against the config that is compiled next


def _has_autotuned_kernel(module: ModuleType) -> bool:
    for value in vars(module).values():
        kernel = value
        while issubclass(type(kernel), KernelInterface) and not issubclass(type(kernel), Autotuner):
            kernel = getattr(kernel, "fn", None)
        if issubclass(type(kernel), Autotuner):
            return True
    return False


# In the worker ---------------------------------------------------------------------------------------------------------


def _read_reports(pipes: Sequence[int], scout: int) -> int:
    """Use the children's reports until all pipes are closed or the scout has ended; returns the scout's exit status."""
    unread = dict.fromkeys(pipes, b"")
    while unread:
        ready = select.select(list(unread), [], [], _POLL_S)[0]
        if not ready and (status := _exit_status(scout, os.WNOHANG)) is not None:
            return status  # a process that the host code started may keep the pipes open
        for pipe in ready:
            chunk = os.read(pipe, _CHUNK)
            try:
                unread[pipe] = _use_reports(unread[pipe] + chunk)
            except ValueError:  # the host code wrote into the pipe
                chunk = b""
            if not chunk:
                del unread[pipe]
    return _exit_status(scout) or 0


def _use_reports(data: bytes) -> bytes:
    """Use all complete reports in `data`; returns the incomplete rest."""
    while len(data) >= _SIZE_BYTES and len(data) >= (end := _SIZE_BYTES + int.from_bytes(data[:_SIZE_BYTES])):
        kernel = _COMPILED.decode(data[_SIZE_BYTES:end])
        cache_files.trust(kernel.hash)
        capture.compile_logs.setdefault(kernel.hash, (kernel.log, kernel.seconds))
        if kernel.tuned:
            reporting.progress()
        data = data[end:]
    return data


def _exit_status(child: int, options: int = 0) -> int | None:
    """The exit status of a child process, -1 if it is unknown; `None` while the child runs."""
    try:
        pid, status = os.waitpid(child, options)
    except ChildProcessError:  # foreign code may ignore SIGCHLD, so that the kernel reaps children
        return -1
    return os.waitstatus_to_exitcode(status) if pid else None


# In the scout ----------------------------------------------------------------------------------------------------------


def _run_scout(call: Callable[[], None], target: Target, pipes: Sequence[int]) -> NoReturn:
    status = 0
    try:
        signal.signal(signal.SIGALRM, _stop_host_code)
        signal.alarm(HOST_S)
        reporting.progress = lambda: None
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
    compile_now = jit.JITFunction._do_compile
    seen = set()

    def add_kernel(kernel: Any, key: Any, *args: Any, **named: Any) -> Any:
        _signature, _device, _constants, options, *_ = args
        if (kernel.cache_key, key) not in seen:
            seen.add((kernel.cache_key, key))
            make = partial(compile_now, kernel, key, *args, **named)
            kernels.append(_Kernel(kernel.fn.__name__, make, tuned=capture.tuning.active))
        compiled = stub(target, vars(options), lambda *_, **__: None)
        compiled.hash = ""
        return compiled

    jit.JITFunction._do_compile = add_kernel


def _fork_children(kernels: Sequence[_Kernel], pipes: Sequence[int]) -> int:
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
        os.close(pipe)
    failed = [child for child in children if _exit_status(child)]
    return CHILD_LOST if failed else 0


# In a child ------------------------------------------------------------------------------------------------------------


def _run_child(kernels: Sequence[_Kernel], queue: int, pipe: int) -> NoReturn:
    status = 1
    try:
        while not capture.is_patched() and (index := os.read(queue, _INDEX_BYTES)):
            signal.alarm(KERNEL_S)
            kernel = kernels[int.from_bytes(index)]
            launch = capture.Launch(kernel.name, 0, grid=None, config={}, autotune_index=None)
            with contextlib.suppress(Exception):  # the worker compiles the kernel again and reports the error
                capture.compile_kernel(kernel.make, launch)
            if launch.compiled is not None:
                report = _Compiled(launch.compiled.hash, launch.log, launch.seconds, kernel.tuned)
                data = msgspec.msgpack.encode(report)
                data = len(data).to_bytes(_SIZE_BYTES) + data
                while data:
                    data = data[os.write(pipe, data) :]
            elif not kernel.tuned:
                os.read(queue, _CHUNK)  # empty the queue: the candidate has most likely failed
        status = 0
    finally:
        os._exit(status)
