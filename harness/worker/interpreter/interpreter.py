"""Runs candidates in Triton's interpreter on the CPU and counts what their kernels do.

Only the modules of this folder touch the interpreter's internals (Triton 3.5 to 3.7). The process must set
`TRITON_INTERPRET=1` before it imports triton.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.runtime import interpreter

from harness.wire.device import Target
from harness.worker.interpreter import interpreted_launches
from harness.worker.interpreter.semantics import language, libdevice
from harness.worker.interpreter.semantics.arithmetic import is_bfloat16
from harness.worker.interpreter.semantics.reductions import Reduction, Scan
from harness.worker.triton_hooks import older_interpreter, stub_driver
from harness.worker.triton_hooks.autotuning import Mode, policy

from .builder import WatchedBuilder
from .traffic import UnsupportedHere, observe

__all__ = ["UnsupportedHere", "observe", "prepare"]

_OPERATORS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"),
    *("lt", "le", "gt", "ge", "eq", "ne"),
)


def prepare(target: Target) -> None:
    """Prepare this process for a candidate: once, before its module is imported.

    `cuda` then means the CPU and answers as `target`'s reference device would. `@triton.autotune` takes the first config
    that its own pruning leaves. Every access of a kernel is counted and kept inside its tensor.
    """
    if not triton.knobs.runtime.interpret:
        raise RuntimeError("TRITON_INTERPRET=1 must be set before triton is imported")
    older_interpreter.install()
    stub_driver.install(target)
    # A device is silent about overflow and invalid values; numpy would print warnings into the candidate's output.
    np.seterr(all="ignore")
    _install()
    interpreted_launches.install(target)
    policy.mode = Mode.FIRST
    policy.install()


def _install() -> None:
    """Replace what Triton finds by its name, and no method of a builder or a semantic can change.

    Each line replaces a different name, and none uses what another line replaced, so their order does not matter.
    """
    builder = WatchedBuilder()
    interpreter.interpreter_builder, interpreter.interpreter_semantic = builder, language.Semantic(builder)
    # Triton 3.6 makes a new semantic for every function of the language; a trace replaces the builder of ours.
    interpreter.TritonSemantic = lambda _builder: interpreter.interpreter_semantic
    interpreter.ReduceOps, interpreter.ScanOps = Reduction, Scan
    interpreter._validate_np_data_size = _fits
    interpreter._get_np_dtype = functools.partial(_np_dtype, interpreter._get_np_dtype, {})
    interpreter._implicit_cvt = functools.partial(interpreted_launches.convert, interpreter._implicit_cvt)
    interpreter.FunctionRewriter.ast_transformer = language.Rewriter()
    interpreter.FunctionRewriter._compile_and_exec = language.compile_and_exec
    interpreter.InterpretedFunction.__call__ = interpreted_launches.call_function
    for owner in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
        owner.materialize_pointers = _based(owner.materialize_pointers)
    for name in _OPERATORS:
        setattr(tl.constexpr, f"__{name}__", _unwrapping(getattr(tl.constexpr, f"__{name}__")))
    libdevice.install()


def _fits(array: Any, dtype: Any) -> bool:
    """Whether an array can hold values of a type; bfloat16 is kept as float32."""
    if isinstance(dtype, tl.pointer_type):
        return True
    return bool(array.itemsize <= (4 if is_bfloat16(dtype) else max(dtype.primitive_bitwidth // 8, 1)))


def _np_dtype(own: Callable[[Any], Any], dtypes: dict[str, Any], dtype: Any) -> Any:
    """The dtype of the arrays for a type. Triton builds its whole table for each lookup."""
    name = dtype.scalar.name
    if name not in dtypes:
        dtypes[name] = np.dtype(np.float32) if is_bfloat16(dtype) else own(dtype)
    return dtypes[name]


def _based(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that makes a block pointer's addresses, with the tensor that they belong to."""

    @functools.wraps(method)
    def materialize(self: Any, *args: Any) -> Any:
        """Make the addresses, and let them know the tensor of the block pointer."""
        pointers, masks = method(self, *args)
        pointers.bounded = True  # a block pointer defines its own padding, in practice zero
        if hasattr(self.base, "origin"):
            pointers.origin = self.base.origin
        return pointers, masks

    return materialize


def _unwrapping(method: Callable[..., Any]) -> Callable[..., Any]:
    """Constants of modules (`LOG2E = tl.constexpr(1.44)`) compute with tensors as their plain values do."""
    compute = getattr(operator, method.__name__)

    @functools.wraps(method)
    def operate(self: Any, other: Any) -> Any:
        return compute(self.value, other) if isinstance(other, tl.tensor) else method(self, other)

    return operate
