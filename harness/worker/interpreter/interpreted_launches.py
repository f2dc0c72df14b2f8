"""Every launch of an interpreted kernel: runs its programs in the patched language, and notes it in the current observation."""

from __future__ import annotations

import functools
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
from harness.worker.interpreter.semantics import constants, language
from harness.worker.interpreter.semantics.float_conversions import FLOAT8
from harness.worker.interpreter.tapes.programs import Programs
from harness.worker.triton_hooks.autotuning import policy, static_assert
from harness.worker.triton_hooks.launches import Launch, handle_launches, parameters_of, sizes, tensors_in
from harness.worker.triton_hooks.stub_driver import stub

from .traffic import LaunchRecord, Observation, cannot, current, running

_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz)
_NARROW = "the interpreter computes {name} wrongly, so this device cannot judge it"
_OVERLAPS = (
    "a launch with `launch_pdl=True` may begin before the one ahead of it has ended; launches come one after the other here, so "
    "this device cannot judge it"
)

RunPrograms = Callable[[Any, Mapping[str, Any], tuple[int, int, int]], None]

_patches: list[tuple[Any, str, Any]] = []
"""The patches of the language while a kernel runs: owner, name and value."""


def install(target: Target) -> None:
    """Run launches here. Call it once a process, when the builder and the semantic are replaced."""
    _patches.extend(_language_patches())
    handle_launches(lambda launch: _handle(launch, target))


def replace_programs(run: RunPrograms) -> None:
    """From now on, let `run` run the programs of each launch; it gets kernel, arguments and grid."""
    _running.programs = run


def _handle(launch: Launch, target: Target) -> Any:
    if not launch.warmup:
        _run(launch)
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


def _run(launch: Launch) -> None:
    """Run one launch of an interpreted kernel: its hooks, then each of its programs, all noted in the current observation.

    A launch outside an observed call, as an import makes it, gets an observation of its own. Raises what the kernel raises, and
    the error of `cannot` for launches that the interpreter cannot order.
    """
    observation = current()
    if observation is None:  # an import launches
        with running(Observation(zero_lanes=True)):
            return _run(launch)
    if launch.named.get("launch_pdl"):
        raise cannot(_OVERLAPS)
    kernel, builder, bound = launch.kernel, interpreter.interpreter_builder, launch.bind()
    observation.launching = True
    try:
        with observation.counting(trial=policy.trying):
            for hook in kernel.pre_run_hooks:
                hook(
                    *launch.args,
                    **{name: launch.named[name] for name in launch.named.keys() - launch.options},
                )
            size = _sizes_of(launch.grid, bound | launch.arguments, observation)
            observation.launches.append(LaunchRecord(kernel.fn.__name__, size, math.prod(size)))
            builder.observation, _running.names = observation, _names(launch.arguments)
            builder.set_grid_dim(*size)
            with _patched_language():
                values = constants.arguments(kernel, bound)
                with observation.following_stores():
                    _running.programs(kernel, values, size)
    finally:
        observation.launching = False


def _run_programs(kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
    """Run all programs of a launch, one after the other. An exception of the kernel becomes Triton's `InterpreterError`."""
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


@contextmanager
def _patched_language() -> Iterator[None]:
    """Patch `triton.language` in the block; the code after it finds Triton's own language."""
    scope = interpreter._LangPatchScope()
    for owner, name, value in _patches:
        scope.set_attr(owner, name, value)
    try:
        yield
    finally:
        scope.restore()


def _language_patches() -> list[tuple[Any, str, Any]]:
    """The patches of `triton.language`: owner, name and value. `language` gets them too.

    The interpreter patches the modules that a kernel's globals name, anew for each call of a device function (`tl.sum` among
    them), and never restores them. Here both modules are patched, whatever the kernel names.
    """
    scope = interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    # Triton 3.6 makes loop bounds of arrays in a way that numpy 2.4 refuses.
    scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
    for owner in (tl, tl.core):
        scope.set_attr(owner, "static_assert", static_assert)
        scope.set_attr(owner, "multiple_of", _multiple_of)
        scope.set_attr(owner, "range", interpreter.interpreter_semantic.counted)
        scope.set_attr(owner, "static_range", language.static_range)
    scope.set_attr(tl.dtype, "to_ir", _with_float8(tl.dtype.to_ir))
    language.remember(scope._changes)
    patches = [(owner, name, getattr(owner, name)) for owner, name, _ in scope._changes]
    scope.restore()
    return patches


def _multiple_of(input: Any, values: Any) -> Any:
    """Replace `tl.multiple_of`: return the input, after the builder has checked that its values are such multiples.

    Raises `ValueError` for a wrong number of values. An input that is no tensor is not checked.
    """
    if isinstance(input, tl.tensor):
        listed = values if isinstance(values, (list, tuple, tl.tuple)) else [values]
        numbers = [int(value.value if isinstance(value, tl.constexpr) else value) for value in listed]
        if len(numbers) != max(1, len(input.shape)):
            raise ValueError(f"tl.multiple_of takes a value for each dimension, {len(input.shape)} here")
        interpreter.interpreter_semantic.builder.create_multiple_of(input.handle, numbers)
    return input


def _with_float8(to_ir: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's `dtype.to_ir`, extended by AMD's 8-bit floats, without the formats that it computes wrongly."""

    def to_type(dtype: Any, builder: Any) -> Any:
        if dtype.name in FLOAT8:
            return dtype
        if dtype.is_fp8():
            raise cannot(_NARROW.format(name=dtype))
        return to_ir(dtype, builder)

    return to_type


def call_function(function: Any, *args: Any, **named: Any) -> Any:
    """A kernel calls a function of its module."""
    rewritten = function.rewrite()
    try:
        return rewritten(*args, **named)
    except Exception as error:
        raise triton.InterpreterError(repr(error)) from error


def convert(to_pointer: Callable[[Any], Any], value: Any) -> Any:
    """An argument as its programs get it; a pointer knows its tensor."""
    if isinstance(value, (int, float)):
        return constants.number(value)
    dtype = getattr(value, "dtype", None)
    narrow = isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize == 1
    if narrow and dtype not in _EIGHT_BITS:
        raise cannot(_NARROW.format(name=str(dtype).removeprefix("torch.")))
    pointer = to_pointer(value)
    tensor = interpreter._unwrap_tensor(value)
    if isinstance(tensor, torch.Tensor):
        names = _running.names.get(tensor.data_ptr(), ())
        pointer.handle.origin = interpreter.interpreter_builder.observation.origin(tensor, names)
    return pointer


def _names(arguments: Mapping[str, Any]) -> dict[int, tuple[str, ...]]:
    """The kernel's parameters by the address of their tensor."""
    names: dict[int, tuple[str, ...]] = {}
    for name, value in arguments.items():
        for tensor in tensors_in(value):
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
