"""Every launch of an interpreted kernel: runs its programs in the patched language, and notes it in the current observation."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch
import triton
import triton.language as tl
from triton.runtime import interpreter

from harness.wire.device import Target
from harness.worker.interpreter import hints
from harness.worker.interpreter.semantics import aliases, constants, gaps, loops
from harness.worker.interpreter.tapes.programs import Programs
from harness.worker.triton_hooks.autotuning import policy, static_assert
from harness.worker.triton_hooks.launches import Launch, handle_launches, parameters_of, sizes, tensors_in
from harness.worker.triton_hooks.stub_driver import stub

from .observing import current
from .traffic import LaunchRecord, Observation

RunPrograms = Callable[[Any, Mapping[str, Any], tuple[int, int, int]], None]

_patches: list[tuple[Any, str, Any]] = []
"""The patches of the language, as the first launch made them: owner, name and value."""


def install(target: Target) -> None:
    """Run launches here. Call it once a process, after all modules that change the interpreter's builder."""
    handle_launches(lambda launch: _handle(launch, target))
    interpreter.InterpretedFunction.__call__ = _call_function
    interpreter._implicit_cvt = functools.partial(_convert, interpreter._implicit_cvt)
    _patch_language().restore()  # before foreign code runs


def replace_programs(run: RunPrograms) -> None:
    """From now on, let `run` run the programs of each launch; it gets kernel, arguments and grid.

    Turns off the interpreter's check for overflows, which computes each sum twice: a sixth of all the time.
    """
    _running.programs = run
    builder = interpreter.interpreter_builder
    builder.options = dataclasses.replace(builder.options, sanitize_overflow=False)


def _handle(launch: Launch, target: Target) -> Any:
    if not launch.warmup:
        run(launch.kernel, launch.grid, launch.args, launch.named, launch.named)
    return stub(target, launch.named, functools.partial(_launch_again, launch))


def _launch_again(compiled: Launch, grid: Any, *values: Any, **_: Any) -> None:
    """Launch a compiled kernel with different arguments: its constants and options stay those of its compilation."""
    parameters = {parameter.name: parameter for parameter in parameters_of(compiled.kernel)}
    kept = {
        name: value
        for name, value in compiled.arguments.items()
        if name not in parameters or parameters[name].is_constexpr
    }
    arguments = {name: value for name, value in zip(parameters, values, strict=False) if name not in kept}
    compiled.kernel.run(grid=grid, warmup=False, **arguments, **kept)


def run(
    kernel: Any, grid: Any, args: tuple[Any, ...], named: Mapping[str, Any], options: Mapping[str, Any]
) -> None:
    """Run a launch. `named`: arguments by keyword, and options if the host code made the launch."""
    observation = current()
    arguments = dict(zip(inspect.signature(kernel.fn).parameters, args, strict=False)) | dict(named)
    if observation is not None:
        _running.names = _names(arguments)
        gaps.refuse_overlap(options)
    noted = observation or Observation()
    parameters = inspect.getfullargspec(kernel.fn).args
    named = {name: value for name, value in named.items() if name in parameters}
    noted.launching = True
    try:
        with noted.counting(trial=policy.trying), _launched(kernel, args, named) as values:
            size = _sizes_of(grid, values | arguments, noted)
            x, y, z = size
            noted.launches.append(LaunchRecord(kernel.fn.__name__, size, x * y * z))
            interpreter.interpreter_builder.set_grid_dim(x, y, z)
            with noted.following_stores():
                _running.programs(kernel, values, size)
    finally:
        noted.launching = False


@contextmanager
def _launched(kernel: Any, args: tuple[Any, ...], named: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arguments of a launch as the interpreter makes them, but without copies of the tensors, in the patched language."""
    for hook in kernel.pre_run_hooks:
        hook(*args, **named)
    scope = _patch_language()
    try:
        yield constants.arguments(kernel, inspect.getcallargs(kernel.fn, *args, **named))
    finally:
        scope.restore()


def _run_programs(kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    try:
        programs = Programs(kernel.rewrite(), arguments, several=math.prod(grid) > 1)
        x, y, z = map(range, grid)
        for position in itertools.product(x, y, z):
            programs.run(position)
    except Exception as error:
        if triton.knobs.compilation.front_end_debugging:
            raise
        raise triton.InterpreterError(repr(error)) from error


_running = SimpleNamespace(programs=_run_programs, names={})
"""The function that runs programs, and the parameters of the current launch by the address of their tensor."""


def _patch_language() -> Any:
    """Patch `triton.language` until the launch ends; returns the scope to restore.

    The interpreter patches the modules that a kernel's globals name, anew for each call of a device function (`tl.sum` among
    them), and never restores them. Here both modules are patched, whatever the kernel names, and `aliases` gets the changes.
    """
    if _patches:
        scope = interpreter._LangPatchScope()
        for owner, name, value in _patches:
            scope.set_attr(owner, name, value)
        return scope
    scope = interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    # Triton 3.6 makes loop bounds of arrays in a way that numpy 2.4 refuses.
    scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
    scope.set_attr(tl, "dot_scaled", gaps.refusing(gaps.MISSING.format(what="dot_scaled")))
    for owner in (tl, tl.core):
        scope.set_attr(owner, "static_assert", static_assert)
    hints.patch(scope)
    loops.patch(scope)
    scope.set_attr(tl.dtype, "to_ir", gaps.with_float8(tl.dtype.to_ir))
    _patches.extend((owner, name, getattr(owner, name)) for owner, name, _ in scope._changes)
    aliases.remember(scope._changes)
    return scope


def _call_function(function: Any, *args: Any, **named: Any) -> Any:
    """A kernel calls a function of its module."""
    rewritten = function.rewrite()
    try:
        return rewritten(*args, **named)
    except Exception as error:
        raise triton.InterpreterError(repr(error)) from error


def _convert(to_pointer: Callable[[Any], Any], value: Any) -> Any:
    """An argument as its programs get it; a pointer knows its tensor."""
    if isinstance(value, (int, float)):
        return constants.number(value)
    observation = current()
    dtype = getattr(value, "dtype", None)
    if observation is not None and isinstance(dtype, torch.dtype):
        gaps.refuse_narrow(dtype)
    pointer = to_pointer(value)
    tensor = interpreter._unwrap_tensor(value)
    if observation is not None and isinstance(tensor, torch.Tensor):
        names = _running.names.get(tensor.data_ptr(), ())
        pointer.handle.origin = observation.origin(tensor, names)
    return pointer


def _names(arguments: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """The kernel's parameters by the address of their tensor."""
    names: dict[int, tuple[str, ...]] = {}
    for name, value in arguments.items():
        for tensor in tensors_in(value):
            gaps.refuse_narrow(tensor.dtype)
            names[tensor.data_ptr()] = (*names.get(tensor.data_ptr(), ()), name)
    return names


def _sizes_of(grid: Any, arguments: Mapping[str, Any], observation: Observation) -> tuple[int, int, int]:
    """The sizes of a grid. A grid may be a function of the launch's arguments, which is host code."""
    if callable(grid):
        observation.launching = False
        try:
            grid = grid(arguments)
        finally:
            observation.launching = True
    if len(grid) > 3:
        raise ValueError("a grid has at most 3 dimensions")
    return sizes(grid)
