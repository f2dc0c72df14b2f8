"""
Replaces Triton's launch: each launch of the candidate's own host code is compiled for the target and recorded, not run.

For a process that does not interpret and compiles for one target only: Triton keeps compiled kernels by device, so a second
target would get the first target's kernels. Uses internals of Triton's launcher (3.6 and 3.7).
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
from triton.compiler import CompiledKernel
from triton.runtime import jit

from harness.wire.device import Target
from harness.worker.kit import compiler_settings, cuda_shim
from harness.worker.kit.launch_options import dropped, elsewhere, refusal, unknown

from . import cache_files, device_limits
from .host_time import not_counted


class ForeignOption(Exception):
    """A launch option, or a changed compiler, makes it unknown which code the target's compiler would give."""


@dataclass(slots=True)
class Launch:
    """One launch, compiled for the target instead of run."""

    kernel: str
    line: int
    """Line of the kernel's first decorator, or of its `def`."""
    grid: tuple[int, int, int] | None
    config: dict[str, str]
    """Compile-time constants and launch options, printed."""
    autotune_index: int | None
    compiled: Any = None
    """Triton's `CompiledKernel`; set even if the kernel is too large for the device."""
    failure: Exception | None = None
    log: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


_recording: list[Launch] | None = None
_first_settings: compiler_settings.Settings = {}
"""The compiler's settings before the candidate's import."""
patched: list[str] = []
"""The first compiler setting that differed when a kernel was about to be compiled."""
compile_logs: dict[str, tuple[str, float]] = {}
"""Log and seconds of each compiled kernel, by its hash: Triton compiles a kernel once."""
tuning = SimpleNamespace(active=False, index=None, always_all=False)
"""
State of the autotuner: `active` while a config is launched, and `index`, its place (`None` for a config that pruning made).
`always_all`: each launch compiles all configs, not only configs that no earlier launch compiled.
"""


def install(target: Target) -> None:
    """Make launches compile for `target` and not run. Call it once, before the candidate's import."""
    if triton.knobs.runtime.interpret:
        raise RuntimeError("a process that interprets cannot compile: TRITON_INTERPRET must not be set")
    triton.knobs.compilation.always_compile = False  # `cache_files` decides which kernels are compiled
    triton.knobs.nvidia.dump_ptxas_log = True
    cache_files.install()
    cuda_shim.install(target)
    _replace_launch(target)
    _replace_compiled_launch(target)


def save_settings() -> None:
    """Save the compiler's settings, to compare with later. Call it once, before the candidate's import."""
    _first_settings.update(compiler_settings.now())


def is_patched() -> bool:
    """Whether a compiler setting has changed since `save_settings`: compiled code means nothing then. Fills `patched`."""
    if not patched:
        patched.extend(list(compiler_settings.differences(_first_settings))[:1])
    return bool(patched)


@contextlib.contextmanager
def record() -> Iterator[list[Launch]]:
    """Yields a list that collects the block's launches in order, failed launches included."""
    global _recording
    _recording = []
    try:
        yield _recording
    finally:
        _recording = None


def _replace_launch(target: Target) -> None:
    compile_or_launch = jit.JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        launch = Launch(
            self.fn.__name__, int(self.fn.__code__.co_firstlineno), grid=None, config={}, autotune_index=None
        )
        if warmup or _recording is None:
            _compile(self, compile_or_launch, args, options, launch)
            return launch.compiled
        bound = _bind(self, args, options)
        launch.grid = _grid(grid, bound)
        launch.config = {
            parameter.name: _printed(bound[parameter.name])
            for parameter in self.params
            if parameter.is_constexpr and parameter.name in bound
        }
        launch.autotune_index = tuning.index
        _recording.append(launch)
        try:
            options = _accepted(options, bound, target, launch)
            _compile(self, compile_or_launch, args, options, launch)
            device_limits.check(launch.compiled, launch.grid, target)
        except Exception as error:
            launch.failure = error
            raise
        return launch.compiled

    jit.JITFunction.run = run


def _replace_compiled_launch(target: Target) -> None:
    """Record launches as `compiled[grid](...)`, the way in which persistent kernels run after `warmup`."""

    def getitem(self: Any, grid: Any) -> Callable[..., Any]:
        def record_launch(*_: Any, **__: Any) -> None:
            if _recording is None:
                return
            function = self.src.fn
            constants = {function.arg_names[place[0]]: value for place, value in self.src.constants.items()}
            launch = Launch(
                function.fn.__name__,
                int(function.fn.__code__.co_firstlineno),
                grid=_grid(grid, {}),
                config={name: _printed(constants[name]) for name in function.arg_names if name in constants},
                autotune_index=None,
                compiled=self,
            )
            launch.log, launch.seconds = compile_logs.get(self.hash, ("", 0.0))
            _add_options(launch)
            _recording.append(launch)
            try:
                device_limits.check(self, launch.grid, target)
            except Exception as error:
                launch.failure = error
                raise

        return record_launch

    CompiledKernel.__getitem__ = getitem


def _bind(kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> dict[str, Any]:
    """The value of each kernel parameter, defaults included.

    A wrong call raises the `TypeError` that a device's launch raises.
    """
    signature = inspect.signature(kernel.fn)
    named = {name: value for name, value in options.items() if name in signature.parameters}
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def _grid(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    sizes = [int(size) for size in (grid(bound) if callable(grid) else grid)]
    x, y, z = (*sizes, 1, 1, 1)[:3]
    return x, y, z


def _printed(value: Any) -> str:
    value = getattr(value, "value", value)
    return str(getattr(value, "__name__", value))


def _accepted(
    options: dict[str, Any], bound: Mapping[str, Any], target: Target, launch: Launch
) -> dict[str, Any]:
    """
    The launch options that this target's compiler takes; adds them to the launch's config.

    Raises `ForeignOption` for an option of the other vendor's compiler, for a cluster on AMD, and if the compiler is patched.
    Drops an option of another Triton version with a note. Raises `KeyError`, as Triton does, for any other unknown option.
    """
    if is_patched():
        raise ForeignOption(f"`{patched[0]}` was changed")
    accepted = {}
    for name, value in options.items():
        if name not in bound:
            if foreign := refusal(name, value, target.backend) or elsewhere(name, value, target.name):
                raise ForeignOption(foreign)
            if note := dropped(name, target.backend):
                launch.notes = (*launch.notes, note)
                continue
            if mistake := unknown(name, target.backend, bound):
                raise KeyError(mistake)
            launch.config[name] = _printed(value)
        accepted[name] = value
    return accepted


def _compile(
    kernel: Any, compile_only: Any, args: tuple[Any, ...], options: dict[str, Any], launch: Launch
) -> None:
    compile_kernel(lambda: compile_only(kernel, *args, grid=None, warmup=True, **options), launch)
    launch.log, launch.seconds = compile_logs.setdefault(launch.compiled.hash, (launch.log, launch.seconds))
    _add_options(launch)


def _add_options(launch: Launch) -> None:
    for name in ("num_warps", "num_stages"):
        launch.config.setdefault(name, str(getattr(launch.compiled.metadata, name)))


def compile_kernel(make: Callable[[], Any], launch: Launch) -> None:
    """Run `make()` and store the kernel, its log and its duration in `launch`; log and duration even if it raises."""
    began = time.perf_counter()
    printed = io.StringIO()
    diagnostics = CompilerOutput()
    try:
        with not_counted(), diagnostics, contextlib.redirect_stdout(printed):
            launch.compiled = make()
    finally:
        launch.seconds = time.perf_counter() - began
        launch.log = printed.getvalue() + diagnostics.text


class CompilerOutput:
    """Captures in `text` what native code writes to standard error during the block, even if the block raises."""

    def __init__(self) -> None:
        self.text = ""

    def __enter__(self) -> None:
        sys.stderr.flush()
        self._saved_stderr = os.dup(2)
        self._sink = os.memfd_create("compiler-output", os.MFD_CLOEXEC)
        os.dup2(self._sink, 2)

    def __exit__(self, *why: object) -> None:
        sys.stderr.flush()
        os.dup2(self._saved_stderr, 2)
        os.close(self._saved_stderr)
        size = os.lseek(self._sink, 0, os.SEEK_CUR)
        self.text = os.pread(self._sink, size, 0).decode(errors="replace")
        os.close(self._sink)
