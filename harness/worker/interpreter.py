# ruff: noqa: ARG001 -- stands in for the interpreter's methods, whose arguments are theirs
"""
Runs candidates in Triton's interpreter on the CPU and counts what their kernels do.

The only module that touches the interpreter's internals (Triton 3.6 and 3.7). The process must have set
`TRITON_INTERPRET=1` before it imported triton.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import autotuner, interpreter
from triton.runtime.interpreter import TensorHandle

from harness.device import Target

from . import bfloat16, libdevice, reductions, shim
from .traffic import LaunchRecord, Observation, Origin

NARROW = "the interpreter computes {name} wrongly (its casts truncate), so this device cannot judge it"
MISSING = "Triton's interpreter has no {what}, so this device cannot judge it"
# Builder methods whose result points where their argument does.
_CARRIERS = (
    "create_addptr",
    "create_splat",
    "create_unsplat",
    "create_broadcast",
    "create_expand_dims",
    "create_reshape",
    "create_trans",
    "create_bitcast",
)


class UnsupportedHere(Exception):
    """The interpreter cannot run this kernel rightly; says nothing of the kernel."""


_current: Observation | None = None


def prepare(target: Target) -> None:
    """
    Make this process ready for a candidate: once, before its module is imported.

    `cuda` comes to mean the CPU and answers as `target`'s reference device would, `@triton.autotune` takes the first
    config that its own pruning leaves, and every access of a kernel is counted and kept inside its tensor.
    """
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 must be set before triton is imported")
    shim.install(target)
    # A device is silent about overflow and invalid values; numpy would warn into what the candidate printed.
    np.seterr(all="ignore")
    reductions.install()
    bfloat16.install(cannot)
    _first_config()
    _patch_once_a_launch()
    _hook_launches(target)
    _hook_memory()
    _hook_types()


@contextmanager
def observe(inputs: Mapping[str, Any]) -> Iterator[Observation]:
    """
    Count what kernels do until the block ends.

    Of each tensor in `inputs`, only its own elements may be touched, not the rest of its storage. Exceptions of the candidate pass;
    look at `unsupported` first even then.
    """
    global _current
    observation = Observation()
    observation.admit(inputs)
    _current = observation
    try:
        yield observation
    finally:
        _current = None


def cannot(why: str) -> UnsupportedHere:
    """Note in the running observation that the interpreter cannot judge this, and return what to raise."""
    if _current is not None and _current.unsupported is None:
        _current.unsupported = why
    return UnsupportedHere(why)


def _first_config() -> None:
    """The interpreter cannot time, so an autotuned kernel runs with its first config, as the cached path would."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        config = self.prune_configs(kwargs)[0] if len(self.configs) > 1 else self.configs[0]
        self.best_config = config
        if config.pre_hook is not None:
            config.pre_hook({**self.nargs, **kwargs, **config.all_kwargs()})
        result = self.fn.run(*args, **kwargs, **config.all_kwargs())
        self.nargs = None
        return result

    autotuner.Autotuner.run = run


def _patch_once_a_launch() -> None:
    """
    The interpreter patches `triton.language` anew for each call of a device function, `tl.sum` among them, and never
    takes that back. Here each module is patched once a launch and restored when it ends: less work, and nothing is
    left changed.
    """
    patch_language = interpreter._patch_lang
    inner: list[Any] = []
    patched: set[frozenset[str]] = set()

    def patch(fn: Any) -> Any:
        scope = patch_language(fn)
        # Triton 3.6 makes loop bounds of arrays in a way that numpy 2.4 refuses.
        scope.set_attr(tl.tensor, "__index__", lambda tensor: int(tensor.handle.data.item()))
        scope.set_attr(tl, "dot_scaled", _refusing(MISSING.format(what="dot_scaled")))
        to_ir = tl.dtype.to_ir
        scope.set_attr(tl.dtype, "to_ir", lambda dtype, builder: to_ir(_wide(dtype), builder))
        return scope

    @functools.cache
    def languages(fn: Any) -> frozenset[str]:
        return frozenset(
            module.__name__ for module in (tl, tl.core) if any(module is v for v in fn.__globals__.values())
        )

    def patch_for_launch(fn: Any) -> Any:
        outer = patch(fn)
        patched.add(languages(fn))

        def restore() -> None:
            patched.clear()
            while inner:
                inner.pop().restore()
            outer.restore()

        return SimpleNamespace(restore=restore)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        used = languages(self.fn)
        if used not in patched:
            patched.add(used)
            inner.append(patch(self.fn))
        fn = self.rewrite()
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            raise interpreter.InterpreterError(repr(error)) from error

    interpreter._patch_lang = patch_for_launch
    interpreter.InterpretedFunction.__call__ = call


def _hook_launches(target: Target) -> None:
    run_kernel = interpreter.InterpretedFunction.run
    to_pointer = interpreter._implicit_cvt
    set_grid = interpreter.InterpreterBuilder.set_grid_dim
    launching = SimpleNamespace(kernel="", names={})

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        if warmup:
            return _compiled_stub(target, kwargs)
        if _current is None:
            return run_kernel(self, *args, grid=_as_tuple(grid), warmup=False, **kwargs)
        parameters = inspect.signature(self.fn).parameters
        named = dict(zip(parameters, args, strict=False)) | kwargs
        launching.kernel = self.fn.__name__
        launching.names = {}
        for name, value in named.items():
            for tensor in _tensors(value):
                _refuse_narrow(tensor.dtype)
                known = launching.names.get(tensor.data_ptr(), ())
                launching.names[tensor.data_ptr()] = (*known, name)
        return run_kernel(self, *args, grid=_as_tuple(grid), warmup=False, **kwargs)

    def implicit_cvt(arg: Any) -> Any:
        pointer = to_pointer(arg)
        tensor = interpreter._unwrap_tensor(arg)
        if _current is not None and isinstance(tensor, torch.Tensor):
            names = launching.names.get(tensor.data_ptr(), ())
            pointer.handle.origin = _current.origin(tensor, names)
        return pointer

    def set_grid_dim(self: Any, x: int, y: int, z: int) -> None:
        if _current is not None:
            grid = (int(x), int(y), int(z))
            _current.launches.append(LaunchRecord(launching.kernel, grid, grid[0] * grid[1] * grid[2]))
        set_grid(self, x, y, z)

    interpreter.InterpretedFunction.run = run
    interpreter._implicit_cvt = implicit_cvt
    interpreter.InterpreterBuilder.set_grid_dim = set_grid_dim


def _as_tuple(grid: Any) -> Any:
    """Grids may be lists on a device; the interpreter wants tuples."""
    if callable(grid):
        return lambda meta: tuple(grid(meta))
    return tuple(grid) if isinstance(grid, list) else grid


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an argument of a launch: itself, in a tuple, or under a descriptor or a reinterpreting wrapper."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _tensors(part)
    elif hasattr(value, "base"):
        dtype = getattr(value, "dtype", None)
        if isinstance(dtype, torch.dtype):
            _refuse_narrow(dtype)
        yield from _tensors(value.base)


def _refuse_narrow(dtype: torch.dtype) -> None:
    if dtype.is_floating_point and dtype.itemsize == 1:
        raise cannot(NARROW.format(name=str(dtype).removeprefix("torch.")))


def _wide(dtype: Any) -> Any:
    """A type that a kernel names, when the interpreter computes it rightly."""
    if dtype.is_fp8():
        raise cannot(NARROW.format(name=dtype))
    return dtype


def _compiled_stub(target: Target, options: Mapping[str, Any]) -> SimpleNamespace:
    """
    What `kernel.warmup` gives under the interpreter, where nothing is compiled.

    Persistent kernels size their grid by it; any grid is right, so modest numbers do. They are shown nowhere.
    """
    metadata = SimpleNamespace(
        shared=1024,
        num_warps=options.get("num_warps", 4),
        num_stages=options.get("num_stages", 2),
        num_ctas=1,
    )
    return SimpleNamespace(
        n_regs=64,
        n_spills=0,
        n_max_threads=1024,
        metadata=metadata,
        asm={},
        function=0,
        num_warps=metadata.num_warps,
        shared=metadata.shared,
        target=shim.gpu_target(target),
        _init_handles=lambda: None,
    )


def _hook_memory() -> None:
    builder = interpreter.InterpreterBuilder
    load, store = builder.create_masked_load, builder.create_masked_store
    atomic_rmw, atomic_cas, dot = builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot

    def masked_load(self: Any, ptrs: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return load(self, ptrs, _guard("load", ptrs, mask), *rest, **named)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return store(self, ptrs, value, _guard("store", ptrs, mask), *rest, **named)

    def rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        return atomic_rmw(self, operation, ptr, val, _guard("atomic", ptr, mask), *rest, **named)

    def cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any, **named: Any) -> Any:
        guarded = _guard("atomic", ptr, None)
        if guarded is None:
            return atomic_cas(self, ptr, cmp, val, *rest, **named)
        lanes = guarded.data
        old = np.zeros(lanes.shape, dtype=val.data.dtype)
        if lanes.any():
            parts = (
                TensorHandle(np.broadcast_to(of.data, lanes.shape)[lanes], of.dtype) for of in (ptr, cmp, val)
            )
            old[lanes] = atomic_cas(self, *parts, *rest, **named).data
        return TensorHandle(old, cmp.dtype.scalar)

    def counted_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        if _current is not None:
            _current.dot_flops += 2 * int(d.data.size) * int(a.data.shape[-1])
        return dot(self, a, b, d, *rest, **named)

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot = rmw, cas, counted_dot
    for name in _CARRIERS:
        setattr(builder, name, _carrying(getattr(builder, name)))
    for owner in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
        owner.materialize_pointers = _based(owner.materialize_pointers)


def _guard(kind: str, ptrs: Any, mask: Any) -> Any:
    """The mask to use for an access: the kernel's own, or one without the lanes that miss their tensor."""
    if _current is None:
        return mask
    bits = mask if mask is None or isinstance(mask, np.ndarray) else mask.data
    item_bytes = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
    kept = _current.touch(kind, ptrs.data, bits, item_bytes, getattr(ptrs, "origin", None))
    return mask if kept is None else TensorHandle(kept, tl.int1)


def _carrying(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def carry(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        if isinstance(result.dtype, tl.pointer_type):
            origin: Origin | None = next((arg.origin for arg in args if hasattr(arg, "origin")), None)
            if origin is not None:
                result.origin = origin
        return result

    return carry


def _based(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def materialize(self: Any, *args: Any) -> Any:
        pointers, masks = method(self, *args)
        if hasattr(self.base, "origin"):
            pointers.origin = self.base.origin
        return pointers, masks

    return materialize


def _hook_types() -> None:
    """Say `unsupported` where a kernel uses what the interpreter lacks or computes wrongly."""
    builder = interpreter.InterpreterBuilder
    for method in ("create_extern_elementwise", "create_inline_asm"):
        setattr(builder, method, _refusing(MISSING.format(what=method.removeprefix("create_"))))

    def missing(self: Any, name: str) -> Any:
        if not name.startswith(("create_", "get_")):
            raise AttributeError(name)
        what = name.removeprefix("create_").removeprefix("get_")
        return _refusing(MISSING.format(what=what))

    builder.__getattr__ = missing
    libdevice.install(cannot, MISSING)


def _refusing(why: str) -> Callable[..., Any]:
    def refuse(*args: Any, **named: Any) -> Any:
        raise cannot(why)

    return refuse
