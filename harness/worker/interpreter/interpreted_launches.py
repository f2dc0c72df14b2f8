"""
Every launch of an interpreted kernel: the only place that sees a launch with its kernel, arguments and grid.

Touches internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
import triton.language as tl
from triton.runtime import interpreter

from harness.wire.device import Target
from harness.worker.kit.stub_kernel import stub

from . import aliases, constants, gaps, hints, loops, tuning
from .observing import current
from .traffic import LaunchRecord, Observation

_options: list[Mapping[str, Any]] = []


def install(target: Target) -> None:
    """Note launches in the current observation."""
    _patch_once_a_launch()
    _hook_launches(target)


@contextmanager
def options(named: Mapping[str, Any]) -> Iterator[None]:
    """Launches until the block ends have exactly these options, whichever of their arguments are keywords."""
    _options.append(named)
    try:
        yield
    finally:
        _options.pop()


def _patch_once_a_launch() -> None:
    """
    Patch `triton.language` once a launch and restore it when the launch ends.

    The interpreter patches the modules that a kernel's globals name, anew for each call of a device function (`tl.sum` among
    them), and never restores them. Here both modules are patched, whatever the kernel names, and `aliases` gets the changes.
    """
    patch_language = interpreter._patch_lang
    patches: list[tuple[Any, str, Any]] = []

    def patch(_: Any) -> Any:
        if not patches:
            return first_patch()
        scope = interpreter._LangPatchScope()
        for owner, name, value in patches:
            scope.set_attr(owner, name, value)
        return scope

    def first_patch() -> Any:
        scope = patch_language(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
        # Triton 3.6 makes loop bounds of arrays in a way that numpy 2.4 refuses.
        scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
        scope.set_attr(tl, "dot_scaled", gaps.refusing(gaps.MISSING.format(what="dot_scaled")))
        for owner in (tl, tl.core):
            scope.set_attr(owner, "static_assert", tuning.static_assert)
        hints.patch(scope)
        loops.patch(scope)
        scope.set_attr(tl.dtype, "to_ir", gaps.with_float8(tl.dtype.to_ir))
        patches.extend((owner, name, getattr(owner, name)) for owner, name, _ in scope._changes)
        aliases.remember(scope._changes)
        return scope

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        fn = self.rewrite()
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    interpreter._patch_lang = patch
    interpreter.InterpretedFunction.__call__ = call


def _hook_launches(target: Target) -> None:
    builder = interpreter.InterpreterBuilder
    run_kernel, to_pointer = interpreter.InterpretedFunction.run, interpreter._implicit_cvt
    set_grid, set_position = builder.set_grid_dim, builder.set_grid_idx
    launching = SimpleNamespace(kernel=None, arguments={}, options={}, names={})

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return stub(target, kwargs, _launch_again(self, args, kwargs))
        observation = current()
        arguments = dict(zip(inspect.signature(self.fn).parameters, args, strict=False)) | kwargs
        if observation is not None:
            launching.kernel, launching.arguments = self.fn, arguments
            launching.names = _names(launching.arguments)
            observation.launching = True
            launching.options = _options[-1] if _options else kwargs
            gaps.refuse_overlap(launching.options)
        counting = tuning.uncounted(observation) if tuning.trial.runs else nullcontext()
        try:
            with counting:
                run_kernel(self, *args, grid=_grid_of(grid, arguments, observation), warmup=False, **kwargs)
            return stub(target, kwargs, _launch_again(self, args, kwargs))
        finally:
            if observation is not None:
                observation.launching = False

    def implicit_cvt(arg: Any) -> Any:
        if isinstance(arg, (int, float)):
            return constants.number(arg)
        pointer = to_pointer(arg)
        tensor = interpreter._unwrap_tensor(arg)
        observation = current()
        if observation is not None and isinstance(tensor, torch.Tensor):
            names = launching.names.get(tensor.data_ptr(), ())
            pointer.handle.origin = observation.origin(tensor, names)
        return pointer

    def set_grid_dim(self: Any, x: int, y: int, z: int) -> None:
        """Called once a launch, when the grid is known and before any program runs."""
        observation = current()
        if observation is not None:
            grid = int(x), int(y), int(z)
            kernel, programs = launching.kernel, grid[0] * grid[1] * grid[2]
            observation.launch(
                LaunchRecord(kernel.__name__, grid, programs, kernel, launching.arguments, launching.options)
            )
        set_grid(self, x, y, z)

    def set_grid_idx(self: Any, x: int, y: int, z: int) -> None:
        observation = current()
        if observation is not None:
            if observation.backwards:
                x, y, z = (size - 1 - at for size, at in zip(self.grid_dim, (x, y, z), strict=True))
            observation.begin_program((x, y, z))
        set_position(self, x, y, z)

    interpreter.InterpretedFunction.run = run
    interpreter._implicit_cvt = implicit_cvt
    builder.set_grid_idx, builder.set_grid_dim = set_grid_idx, set_grid_dim


def _launch_again(kernel: Any, args: tuple[Any, ...], options: Mapping[str, Any]) -> Callable[..., None]:
    """Launch a compiled kernel with other arguments: its constants and options stay those of its compilation."""
    names = list(inspect.signature(kernel.fn).parameters)
    constants = {name: value for name, value in zip(names, args, strict=False) if _is_constant(kernel, name)}
    constants |= {
        name: value for name, value in options.items() if name not in names or _is_constant(kernel, name)
    }

    def launch(grid: Any, *positional: Any, **_: Any) -> None:
        arguments = {
            name: value for name, value in zip(names, positional, strict=False) if name not in constants
        }
        kernel.run(grid=grid, warmup=False, **arguments, **constants)

    return launch


def _is_constant(kernel: Any, name: str) -> bool:
    annotation = inspect.signature(kernel.fn).parameters[name].annotation
    return annotation is tl.constexpr or "constexpr" in str(annotation)


def _names(arguments: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """The kernel's parameters by the address of their tensor."""
    names: dict[int, tuple[str, ...]] = {}
    for name, value in arguments.items():
        for tensor in _tensors_in(value):
            gaps.refuse_narrow(tensor.dtype)
            names[tensor.data_ptr()] = (*names.get(tensor.data_ptr(), ()), name)
    return names


def _grid_of(grid: Any, arguments: Mapping[str, Any], observation: Observation | None) -> Any:
    """On a device a grid may be a list, and a function of the launch's own arguments, which is host code."""
    if not callable(grid):
        return tuple(grid) if isinstance(grid, list) else grid

    def call(meta: Any) -> Any:
        if observation is None:
            return tuple(grid(meta | arguments))
        observation.launching = False
        try:
            return tuple(grid(meta | arguments))
        finally:
            observation.launching = True

    return call


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument of a launch: itself, in a tuple, or under a descriptor or a reinterpreting wrapper."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _tensors_in(part)
    elif hasattr(value, "base"):
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, torch.dtype):
            gaps.refuse_narrow(dtype)
        yield from _tensors_in(value.base)
