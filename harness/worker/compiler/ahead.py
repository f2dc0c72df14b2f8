"""
Compiles ahead what a candidate launches, several kernels at once.

A scout, forked for it, calls the host code with nothing compiled and shares out what that asked for among children, which
fill the folder that Triton keeps compiled kernels in. The process itself then works as if nobody had, and finds there what
a child told of. All else it compiles itself, so that failures are its own; a scout or a child that is lost costs time alone.
Touches the internals of Triton's launcher (3.6 and 3.7).
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
"""Kernels from which on children are started."""
FEW_CORES = 2
"""With no more, a scout and its children take more than they save, but where a kernel is autotuned."""
MOST_KERNELS = 2048
"""That children compile: all their places fit into a pipe's first page."""
HOST_S = 5
"""Wall time, for the host code of all cases together."""
KERNEL_S = 60
"""Wall time, for a child to compile one kernel."""
CHILD_LOST = 3
"""Exit status of a scout."""

_CHUNK = 1 << 16
_PLACE_BYTES = 2
_SIZE_BYTES = 4
_LOOK_S = 0.2
reporting = SimpleNamespace(progress=lambda: None)
"""What is called whenever a config of an autotuned kernel is compiled."""


class _Kernel(NamedTuple):
    """Something to compile."""

    name: str
    make: Callable[[], Any]
    tuned: bool
    """Of an autotuned kernel, whose other configs are compiled where this one fails."""


class _Told(msgspec.Struct, array_like=True, frozen=True):
    """What a child tells of a kernel that it compiled."""

    hash: str
    log: str
    seconds: float
    tuned: bool


_TOLD: msgspec.msgpack.Decoder[_Told] = msgspec.msgpack.Decoder(_Told)


def compile_ahead(module: ModuleType, call: Callable[[], None], target: Target) -> None:
    """
    Fill Triton's folder and `capture.told` with what `call`, the candidate's host code, launches, where there are cores for it.

    Nothing that `call` does is left in this process; what it raises ends it and is no failure. `module`: the candidate's.
    """
    cores = min(len(os.sched_getaffinity(0)), MOST_CHILDREN)
    if cores < 2 or (cores <= FEW_CORES and not _tunes(module)):
        return
    with contextlib.ExitStack() as reading:
        try:
            with contextlib.ExitStack() as writing:
                pipes = [_pipe(reading, writing) for _ in range(cores)]
                scout = os.fork()
                if scout == 0:
                    _scout(call, target, [end for _, end in pipes])
        except OSError:  # neither pipes nor processes are left
            return
        if _hear([end for end, _ in pipes], scout) == CHILD_LOST:
            reporting.progress()  # how long it took to be lost is not to count against what is compiled now


def _tunes(module: ModuleType) -> bool:
    for value in vars(module).values():
        kernel = value
        while issubclass(type(kernel), KernelInterface) and not issubclass(type(kernel), Autotuner):
            kernel = getattr(kernel, "fn", None)
        if issubclass(type(kernel), Autotuner):
            return True
    return False


def _pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    reading.callback(os.close, ends[0])
    writing.callback(os.close, ends[1])
    return ends


def _hear(pipes: Sequence[int], scout: int) -> int:
    """Take over what children tell, until they are done or gone; the scout's exit status."""
    held = dict.fromkeys(pipes, b"")
    while held:
        ready = select.select(list(held), [], [], _LOOK_S)[0]
        if not ready and (status := _ended(scout, os.WNOHANG)) is not None:
            return status  # what the host code started may hold the pipes for ever
        for end in ready:
            part = os.read(end, _CHUNK)
            try:
                held[end] = _take(held[end] + part)
            except ValueError:  # the host code wrote into it
                part = b""
            if not part:
                del held[end]
    return _ended(scout) or 0


def _take(told: bytes) -> bytes:
    """What is left of `told` when all that is whole has been taken over."""
    while len(told) >= _SIZE_BYTES and len(told) >= (end := _SIZE_BYTES + int.from_bytes(told[:_SIZE_BYTES])):
        kernel = _TOLD.decode(told[_SIZE_BYTES:end])
        cache_files.trust(kernel.hash)
        capture.told.setdefault(kernel.hash, (kernel.log, kernel.seconds))
        if kernel.tuned:
            reporting.progress()
        told = told[end:]
    return told


def _ended(child: int, options: int = 0) -> int | None:
    """The exit status of a child, negative where nobody knows it; `None` where it still runs."""
    try:
        pid, status = os.waitpid(child, options)
    except ChildProcessError:  # foreign code may have children reaped by the kernel
        return -1
    return os.waitstatus_to_exitcode(status) if pid else None


def _scout(call: Callable[[], None], target: Target, pipes: Sequence[int]) -> NoReturn:
    status = 0
    try:
        signal.signal(signal.SIGALRM, _leave_off)
        signal.alarm(HOST_S)
        reporting.progress = lambda: None
        _hush()
        kernels: list[_Kernel] = []
        _collect(kernels, target)
        with contextlib.suppress(BaseException):  # the process itself meets it again and tells of it
            call()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if len(kernels) >= WORTHWHILE:
            status = _share_out(kernels[:MOST_KERNELS], pipes)
    finally:
        os._exit(status)


def _leave_off(*_: object) -> None:
    """What the host code launched until now is compiled; where it goes on, the scout ends."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(HOST_S)
    raise TimeoutError


def _hush() -> None:
    """The host code prints again where it counts."""
    sink = os.memfd_create("scout", os.MFD_CLOEXEC)
    for stream in (1, 2):
        os.dup2(sink, stream)


def _collect(kernels: list[_Kernel], target: Target) -> None:
    """From here on launches compile nothing: what they would goes into `kernels`, once."""
    compile_now = jit.JITFunction._do_compile
    seen = set()

    def collect(
        kernel: Any,
        key: Any,
        signature: Any,
        device: Any,
        constexprs: Any,
        options: Any,
        attrs: Any,
        warmup: Any,
    ) -> Any:
        if (kernel.cache_key, key) not in seen:
            seen.add((kernel.cache_key, key))
            make = partial(compile_now, kernel, key, signature, device, constexprs, options, attrs, warmup)
            kernels.append(_Kernel(kernel.fn.__name__, make, tuned=capture.tuning.runs))
        made = stub(target, vars(options))
        made.hash = ""
        return made

    jit.JITFunction._do_compile = collect


def _share_out(kernels: Sequence[_Kernel], pipes: Sequence[int]) -> int:
    """Compile in children, each of which takes the next kernel when it is done with one; the scout's exit status."""
    queue, filling = os.pipe()
    os.write(filling, b"".join(place.to_bytes(_PLACE_BYTES) for place in range(len(kernels))))
    os.close(filling)
    children = []
    for pipe in pipes[: len(kernels)]:
        try:
            child = os.fork()
        except OSError:  # no more processes here: those that are do it all
            break
        if child == 0:
            _compile(kernels, queue, pipe)
        children.append(child)
    for pipe in pipes:
        os.close(pipe)
    lost = [child for child in children if _ended(child)]
    return CHILD_LOST if lost else 0


def _compile(kernels: Sequence[_Kernel], queue: int, pipe: int) -> NoReturn:
    """A child's life; it ends here whatever happens."""
    status = 1
    try:
        while not capture.is_patched() and (place := os.read(queue, _PLACE_BYTES)):
            signal.alarm(KERNEL_S)
            kernel = kernels[int.from_bytes(place)]
            made = capture.Launch(kernel.name, 0, grid=None, config={}, autotune_index=None)
            with contextlib.suppress(Exception):  # as the scout's
                capture.compile_kernel(kernel.make, made)
            if made.compiled is not None:
                told = _Told(made.compiled.hash, made.log, made.seconds, kernel.tuned)
                data = msgspec.msgpack.encode(told)
                _write(pipe, len(data).to_bytes(_SIZE_BYTES) + data)
            elif not kernel.tuned:
                os.read(queue, _CHUNK)  # as a rule the candidate has failed: the rest is not compiled
        status = 0
    finally:
        os._exit(status)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
