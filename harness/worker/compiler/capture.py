"""
Runs a candidate's own host code without a device and compiles every launch it makes, as the device would.

With `ahead` and `configs`, the only modules that touch the internals of Triton's launcher and autotuner (3.6 and 3.7). The process
must not interpret, and serves one target: Triton keeps compiled kernels by device, so a second target would get the first's.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import triton
from triton.runtime import jit
from triton.runtime.errors import OutOfResources

from harness.hardware.targets import hardware
from harness.wire.device import Target
from harness.worker.kit import compiler_settings, cuda_shim
from harness.worker.kit.launch_options import dropped, elsewhere, refusal, unknown

from . import cache_files, starting

MAX_THREADS = 1024
"""Of a workgroup, on every target."""
MAX_GRID = {"cuda": ((1 << 31) - 1, 65535, 65535)}
"""Programs along each axis of a grid; AMD counts threads instead."""
MAX_GRID_THREADS = (1 << 32) - 1
"""Of all workgroups along an axis, on AMD."""


class ForeignOption(Exception):
    """Nothing can be said of what a launch would compile to: of an option that only the other vendor's compiler has, or that brings other code."""


@dataclass(slots=True)
class Launch:
    """One launch as it would have happened, compiled for the target."""

    kernel: str
    line: int
    """Of the kernel's first decorator, or of `def`."""
    grid: tuple[int, int, int] | None
    config: dict[str, str]
    """Compile-time constants and launch options, printed."""
    autotune_index: int | None
    compiled: Any = None
    """Triton's `CompiledKernel`; also there when the device has too little for it."""
    failure: Exception | None = None
    log: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


_recording: list[Launch] | None = None
_before = SimpleNamespace(settings={})
"""Settings that the compiler heeds, before the candidate's module was imported."""
patched: list[str] = []
"""The first setting that was different when a kernel was to be compiled."""
told: dict[str, tuple[str, float]] = {}
"""Log and seconds of each compiled kernel by its hash, as Triton compiles it once."""
tuning = SimpleNamespace(runs=False, index=None, every=False)
"""
Whether an autotuned kernel is launched, and the place of the config that it is launched with; `None` for one that pruning made.
`every`: each launch goes through all configs, not those alone that none before did.
"""


def install(target: Target) -> None:
    """Make launches compile only, for `target`; once a process, before the candidate's module is imported."""
    if triton.knobs.runtime.interpret:
        raise RuntimeError("a process that interprets cannot compile: TRITON_INTERPRET must not be set")
    triton.knobs.compilation.always_compile = False  # `files` says what need not be
    triton.knobs.nvidia.dump_ptxas_log = True
    cache_files.install()
    cuda_shim.install(target)
    _compile_launches(target)


def remember() -> None:
    """Remember the compiler's settings; once a process, before the candidate's module is imported."""
    _before.settings = compiler_settings.now()


def is_patched() -> bool:
    """Whether a setting of the compiler changed since `remember`, so that it may make anything of a kernel; noted in `patched`."""
    if not patched:
        patched.extend(list(compiler_settings.differences(_before.settings))[:1])
    return bool(patched)


@contextlib.contextmanager
def record() -> Iterator[list[Launch]]:
    """The launches made until the block ends, in order, failed ones included; each is compiled."""
    global _recording
    _recording = []
    try:
        yield _recording
    finally:
        _recording = None


def _compile_launches(target: Target) -> None:
    compile_or_launch = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        if warmup or _recording is None:
            alone = Launch(self.fn.__name__, _line(self), grid=None, config={}, autotune_index=None)
            _compile(self, compile_or_launch, args, options, alone)
            return alone.compiled
        bound = _bind(self, args, options)
        launch = Launch(
            kernel=self.fn.__name__,
            line=_line(self),
            grid=_grid(grid, bound),
            config=_constants(self, bound),
            autotune_index=tuning.index,
        )
        _recording.append(launch)
        try:
            options = _accepted(options, bound, target, launch)
            _compile(self, compile_or_launch, args, options, launch)
            _fits(launch, target)
        except Exception as error:
            launch.failure = error
            raise
        return launch.compiled

    jit.JITFunction.run = run


def _line(kernel: Any) -> int:
    return int(kernel.fn.__code__.co_firstlineno)


def _bind(kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """Value of each parameter of the kernel, defaults included; a wrong call raises `TypeError` as on a device."""
    signature = inspect.signature(kernel.fn)
    named = {name: value for name, value in options.items() if name in signature.parameters}
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def _grid(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    sizes = [int(size) for size in (grid(bound) if callable(grid) else grid)]
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


def _constants(kernel: Any, bound: Mapping[str, Any]) -> dict[str, str]:
    names = [parameter.name for parameter in kernel.params if parameter.is_constexpr]
    return {name: _printed(bound[name]) for name in names if name in bound}


def _printed(value: Any) -> str:
    value = getattr(value, "value", value)
    return str(getattr(value, "__name__", value))


def _accepted(
    options: dict[str, Any], bound: Mapping[str, Any], target: Target, launch: Launch
) -> dict[str, Any]:
    """
    The options that this target's compiler takes, printed into the launch's config.

    One that only the other vendor's compiler has raises `ForeignOption`, as does a cluster on AMD; one of another
    version of Triton is dropped with a note; any other raises `KeyError`, as Triton does, with the nearest right name.
    Where the compiler is patched, nothing is compiled: `ForeignOption` too.
    """
    if is_patched():
        raise ForeignOption(f"`{patched[0]}` was changed")
    accepted = {}
    for name, value in options.items():
        if name not in bound:
            foreign = refusal(name, value, target.backend) or elsewhere(name, value, target.name)
            if foreign:
                raise ForeignOption(foreign)
            left_out = dropped(name, target.backend)
            if left_out:
                launch.notes = (*launch.notes, left_out)
                continue
            mistaken = unknown(name, target.backend, bound)
            if mistaken:
                raise KeyError(mistaken)
        accepted[name] = value
        if name not in bound:
            launch.config[name] = _printed(value)
    return accepted


def _compile(
    kernel: Any, compile_only: Any, args: tuple[Any, ...], options: dict[str, Any], launch: Launch
) -> None:
    compile_kernel(lambda: compile_only(kernel, *args, grid=None, warmup=True, **options), launch)
    launch.log, launch.seconds = told.setdefault(launch.compiled.hash, (launch.log, launch.seconds))
    metadata = launch.compiled.metadata
    for name in ("num_warps", "num_stages"):
        launch.config.setdefault(name, str(getattr(metadata, name)))


def compile_kernel(make: Callable[[], Any], launch: Launch) -> None:
    """What `make` compiles stands in `launch` then, and what it printed and took, also where it raises."""
    began = time.perf_counter()
    printed = io.StringIO()
    diagnostics = CompilerOutput()
    try:
        with diagnostics, contextlib.redirect_stdout(printed):
            launch.compiled = make()
    finally:
        launch.seconds = time.perf_counter() - began
        launch.log = printed.getvalue() + diagnostics.text


def _fits(launch: Launch, target: Target) -> None:
    """Raise what Triton raises on a device when it loads a kernel that is too large for it."""
    facts, metadata = hardware(target), launch.compiled.metadata
    if metadata.shared > facts.local_bytes_workgroup:
        raise OutOfResources(metadata.shared, facts.local_bytes_workgroup, "shared memory")
    threads = metadata.num_warps * target.wave_size
    if threads > MAX_THREADS:
        raise OutOfResources(threads, MAX_THREADS, "threads")
    for axis, programs in zip("xyz", launch.grid or (), strict=False):
        most = MAX_GRID_THREADS // (threads if axis == "x" else 1)
        if target.backend in MAX_GRID:
            most = MAX_GRID[target.backend]["xyz".index(axis)]
        if programs > most:
            raise RuntimeError(
                f"the grid has {programs} programs along {axis}, {target.name} launches {most} at most"
            )
    starting.check(launch.compiled, launch.grid, target)


class CompilerOutput:
    """Keeps what native code writes to standard error in the block, as `text`, also when it ends by an exception."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> None:
        sys.stderr.flush()
        self._kept = os.dup(2)
        self._sink = os.memfd_create("compiler-output", os.MFD_CLOEXEC)
        os.dup2(self._sink, 2)

    def __exit__(self, *why: object) -> None:
        sys.stderr.flush()
        os.dup2(self._kept, 2)
        os.close(self._kept)
        size = os.lseek(self._sink, 0, os.SEEK_CUR)
        self.text = os.pread(self._sink, size, 0).decode(errors="replace")
        os.close(self._sink)
