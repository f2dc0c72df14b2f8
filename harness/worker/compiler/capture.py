"""
Each launch of the candidate's own host code is compiled for the target and recorded, not run; an autotuned kernel, each config.

For a process that does not interpret and compiles for one target only: Triton keeps compiled kernels by device, so a second
target would get the first target's kernels.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import triton

from harness.wire.device import Target
from harness.worker.triton_hooks import cache_files, compiler_options, stub_driver
from harness.worker.triton_hooks.autotuning import Mode, policy
from harness.worker.triton_hooks.compiler_options import dropped, elsewhere, refusal, unknown
from harness.worker.triton_hooks.launches import Launch, handle_compiled_launches, handle_launches, sizes

from . import device_limits
from .host_code import not_counted


class ForeignOption(Exception):
    """A launch option, or a changed compiler, makes it unknown which code the target's compiler would give."""


@dataclasses.dataclass(slots=True)
class CompiledLaunch:
    """One launch, compiled for the target instead of run."""

    kernel: str
    line: int
    """Line of the kernel's first decorator, or of its `def`."""
    autotune_index: int | None = None
    autotune_config: str = ""
    """The config that the autotuner launched, as Triton prints it."""
    grid: tuple[int, int, int] | None = None
    config: dict[str, str] = dataclasses.field(default_factory=dict)
    """Compile-time constants and launch options, printed."""
    compiled: Any = None
    """Triton's `CompiledKernel`; set even if the kernel is too large for the device."""
    failure: Exception | None = None
    log: str = ""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()
    function: Any = None
    """Triton's jit function."""


_recording: list[CompiledLaunch] | None = None
_first_settings: compiler_options.Settings = {}
"""The compiler's settings before the candidate's import."""
patched: list[str] = []
"""The first compiler setting that differed when a kernel was about to be compiled."""
compile_logs: dict[str, tuple[str, float]] = {}
"""Log and seconds of each compiled kernel, by its hash: Triton compiles a kernel once."""


def install(target: Target) -> None:
    """Make launches compile for `target` and not run. Call it once, before the candidate's import."""
    if triton.knobs.runtime.interpret:
        raise RuntimeError("a process that interprets cannot compile: TRITON_INTERPRET must not be set")
    triton.knobs.compilation.always_compile = False  # `cache_files` decides which kernels are compiled
    triton.knobs.nvidia.dump_ptxas_log = True
    cache_files.install()
    stub_driver.install(target)
    handle_launches(lambda launch: _compile_instead(launch, target))
    handle_compiled_launches(lambda kernel, grid, _: _check_compiled(kernel, grid, target))
    policy.mode = Mode.ALL
    policy.install()


def save_settings() -> None:
    """Save the compiler's settings, to compare with later. Call it once, before the candidate's import."""
    _first_settings.update(compiler_options.read_settings())


def is_patched() -> bool:
    """Whether a compiler setting has changed since `save_settings`: compiled code means nothing then. Fills `patched`."""
    if not patched:
        patched.extend(list(compiler_options.changed_settings(_first_settings))[:1])
    return bool(patched)


@contextlib.contextmanager
def record() -> Iterator[list[CompiledLaunch]]:
    """Yields a list that collects the block's launches in order, failed launches included."""
    global _recording
    _recording = []
    try:
        yield _recording
    finally:
        _recording = None


def _compile_instead(launch: Launch, target: Target) -> Any:
    """Compile a launch for the target in the place of running it, and note it among the recorded launches, also if it fails.

    Returns the compiled kernel. Raises what Triton raises, and the errors of a device with too little room for the kernel.
    """
    made = CompiledLaunch(
        launch.kernel.fn.__name__,
        int(launch.kernel.fn.__code__.co_firstlineno),
        autotune_index=policy.index,
        autotune_config=policy.config,
        function=launch.kernel,
    )
    if launch.warmup or _recording is None:
        _compile(launch, made)
        return made.compiled
    bound = launch.bind()
    made.grid = sizes(launch.grid(bound) if callable(launch.grid) else launch.grid)
    made.config = {
        parameter.name: _printed(bound[parameter.name])
        for parameter in launch.kernel.params
        if parameter.is_constexpr and parameter.name in bound
    }
    with _recorded(made):
        _compile(dataclasses.replace(launch, named=_accepted(launch.named, bound, target, made)), made)
        device_limits.check(made.compiled, made.grid, target)
    return made.compiled


def _check_compiled(kernel: Any, grid: Sequence[Any], target: Target) -> None:
    """Record a launch of a kernel that `warmup` or an earlier launch compiled, as `compiled[grid](...)`."""
    if _recording is None:
        return
    function = kernel.src.fn
    constants = {function.arg_names[place[0]]: value for place, value in kernel.src.constants.items()}
    made = CompiledLaunch(
        function.fn.__name__,
        int(function.fn.__code__.co_firstlineno),
        function=function,
        grid=sizes(grid),
        config={name: _printed(constants[name]) for name in function.arg_names if name in constants},
        compiled=kernel,
    )
    made.log, made.seconds = compile_logs.get(kernel.hash, ("", 0.0))
    _add_options(made)
    with _recorded(made):
        device_limits.check(kernel, made.grid, target)


@contextlib.contextmanager
def _recorded(made: CompiledLaunch) -> Iterator[None]:
    """Record a launch, with the exception that the block raises."""
    assert _recording is not None
    _recording.append(made)
    try:
        yield
    except Exception as error:
        made.failure = error
        raise


def _printed(value: Any) -> str:
    value = getattr(value, "value", value)
    return str(getattr(value, "__name__", value))


def _accepted(
    options: Mapping[str, Any], bound: Mapping[str, Any], target: Target, made: CompiledLaunch
) -> dict[str, Any]:
    """The launch options that this target's compiler takes; adds them to the launch's config.

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
                made.notes = (*made.notes, note)
                continue
            if mistake := unknown(name, target.backend, bound):
                raise KeyError(mistake)
            made.config[name] = _printed(value)
        accepted[name] = value
    return accepted


def _compile(launch: Launch, made: CompiledLaunch) -> None:
    compile_kernel(lambda: launch.go_on(grid=None, warmup=True), made)
    made.log, made.seconds = compile_logs.setdefault(made.compiled.hash, (made.log, made.seconds))
    _add_options(made)


def _add_options(made: CompiledLaunch) -> None:
    for name in ("num_warps", "num_stages"):
        made.config.setdefault(name, str(getattr(made.compiled.metadata, name)))


def compile_kernel(make: Callable[[], Any], made: CompiledLaunch) -> None:
    """Run `make()` and store the kernel, its log and its duration in `made`; log and duration even if it raises."""
    began = time.perf_counter()
    printed = io.StringIO()
    diagnostics = CompilerOutput()
    try:
        with not_counted(), diagnostics, contextlib.redirect_stdout(printed):
            made.compiled = make()
    finally:
        made.seconds = time.perf_counter() - began
        made.log = printed.getvalue() + diagnostics.text


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
