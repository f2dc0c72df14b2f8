"""Gives the interpreter of Triton 3.5 the parts of 3.6 that the modules of `interpreter/` build on."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import triton.language as tl
from triton.runtime import interpreter

_PATCHED = (tl, tl.core, tl.math, tl.tensor, tl.dtype, tl.core.tensor_descriptor_base)
"""Objects of the language that the interpreter patches."""
_MISSING = object()


class LangPatchScope:
    """The patched attributes, so that they can be restored. Later versions have this class."""

    def __init__(self) -> None:
        self._changes: list[tuple[Any, str, Any]] = []

    def set_attr(self, owner: Any, name: str, value: Any) -> None:
        """Patch an attribute."""
        self._changes.append((owner, name, getattr(owner, name, _MISSING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Undo all patches."""
        while self._changes:
            owner, name, value = self._changes.pop()
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def install() -> None:
    """Give the interpreter of Triton 3.5 the missing parts; with Triton 3.6 and newer, do nothing.

    Call it once per process, before a kernel is defined.
    """
    if hasattr(interpreter, "_LangPatchScope"):
        return
    interpreter._LangPatchScope = LangPatchScope
    _report_patches()
    _launch_by_run()
    _narrow_results()
    interpreter.TensorDescHandle.validate = _validate_descriptor


def _report_patches() -> None:
    """Let the interpreter's `_patch_lang` return the scope of what it changed, with which later versions undo the changes."""
    patch_language = interpreter._patch_lang

    def patch(function: Any) -> LangPatchScope:
        """Patch the language as before, and return what changed."""
        before = [dict(vars(owner)) for owner in _PATCHED]
        patch_language(function)
        scope = LangPatchScope()
        for owner, old in zip(_PATCHED, before, strict=True):
            for name, value in vars(owner).items():
                if old.get(name, _MISSING) is not value:
                    scope._changes.append((owner, name, old.get(name, _MISSING)))
        return scope

    interpreter._patch_lang = patch


def _launch_by_run() -> None:
    """Let launches reach the method `run` of the class. Triton 3.5 makes a `run` in each kernel, which `[grid]` bypasses."""
    kernel_class = interpreter.InterpretedFunction
    begin = kernel_class.__init__

    def init(kernel: Any, *args: Any, **named: Any) -> None:
        begin(kernel, *args, **named)
        vars(kernel).pop("run", None)
        kernel.pre_run_hooks = []

    def run(kernel: Any, *args: Any, grid: Any, warmup: bool, **named: Any) -> Any:
        if warmup:
            return None
        return interpreter.GridExecutor(kernel.rewrite(), kernel.arg_names, grid)(*args, **named)

    def launcher(kernel: Any, grid: Any) -> Any:
        return lambda *args, **named: kernel.run(*args, grid=grid, warmup=False, **named)

    def warm_up(kernel: Any, *args: Any, grid: Any, **named: Any) -> Any:
        return kernel.run(*args, grid=grid, warmup=True, **named)

    kernel_class.__init__, kernel_class.run = init, run
    kernel_class.__getitem__, kernel_class.warmup = launcher, warm_up


def _narrow_results() -> None:
    """Keep the values of a block in its dtype: numpy makes int64 of an int32 shifted by an uint32, and of each histogram."""
    handle_class = interpreter.TensorHandle
    begin: FunctionType = handle_class.__init__

    def init(handle: Any, *args: Any, **named: Any) -> None:
        begin(handle, *args, **named)
        if not interpreter._validate_np_data_size(handle.data, handle.dtype):
            handle.data = handle.data.astype(interpreter._get_np_dtype(handle.dtype))

    handle_class.__init__ = init


def _validate_descriptor(descriptor: Any) -> None:
    """Check a descriptor as later versions do. Triton 3.5 wants strides of 16 elements, where the device wants 16 bytes."""
    itemsize = descriptor.base.dtype.element_ty.primitive_bitwidth // 8
    *strides, last = (stride.data.item() for stride in descriptor.strides)
    assert descriptor.base.data.item() % 16 == 0, "base must be 16-byte aligned"
    assert descriptor.ndim == len(descriptor.strides) == len(descriptor.block_shape) >= 1
    assert all(stride * itemsize % 16 == 0 for stride in strides), "stride must be 16-byte aligned"
    assert last == 1, "last dim must be contiguous"
