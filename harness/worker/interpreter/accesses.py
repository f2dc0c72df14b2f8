"""Counts every access of an interpreted kernel, keeps it inside its tensor, and tracks which tensor a pointer was made from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.kit.poison import INTEGER, Poison

from .observing import current
from .traffic import Observation

_CARRIERS = ("addptr", "splat", "unsplat", "broadcast", "expand_dims", "reshape", "trans", "bitcast")
"""Builder methods that return a pointer into the tensor of their argument."""
_VOLATILE = ir.CACHE_MODIFIER.CV


def install() -> None:
    """Count accesses and dots in the current observation. Once a process, after `float_hooks.install`."""
    builder = interpreter.InterpreterBuilder
    load, store = builder.create_masked_load, builder.create_masked_store
    atomic_rmw, atomic_cas, dot = builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot

    def masked_load(
        self: Any,
        ptrs: Any,
        mask: Any,
        other: Any,
        cache_modifier: Any,
        eviction_policy: Any,
        is_volatile: Any,
    ) -> Any:
        observation = current()
        if observation is not None and (is_volatile or cache_modifier == _VOLATILE):
            observation.note_synchronization()
        guarded = _guard("load", ptrs, mask)
        if observation is not None and observation.samples:
            return _made_up(observation, ptrs.data.shape, ptrs.get_element_ty())
        if other is None and observation is not None and not getattr(ptrs, "bounded", False):
            undefined = _undefined(ptrs, mask)
            if undefined is not None:
                observation.note_undefined_lanes()
            if not observation.zero_lanes:
                other = undefined
        loaded = load(self, ptrs, guarded, other, cache_modifier, eviction_policy, is_volatile)
        if guarded is not mask and observation is not None and observation.outside is not None:
            missed = _bits(mask).astype(np.bool_) & ~_bits(guarded)
            loaded.data = np.where(missed, _garbage(ptrs, observation.outside).data, loaded.data)
        return loaded

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        observation = current()
        guarded = _guard("store", ptrs, mask)
        if observation is not None and observation.samples:
            return None
        return store(self, ptrs, value, guarded, *rest, **named)

    def rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        observation = current()
        guarded = _guard("atomic", ptr, mask)
        if observation is not None and observation.samples:
            return _made_up(observation, ptr.data.shape, val.dtype.scalar)
        old = atomic_rmw(self, operation, ptr, val, guarded, sem, scope)
        undefined = _undefined(ptr, guarded)
        if undefined is not None:
            old.data = np.where(_bits(guarded), old.data, undefined.data)
        return old

    def cas(self: Any, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        observation = current()
        guarded = _guard("atomic", ptr, None)
        if observation is not None and observation.samples:
            return _made_up(observation, ptr.data.shape, cmp.dtype.scalar)
        if guarded is None:
            return atomic_cas(self, ptr, cmp, val, sem, scope)
        lanes = guarded.data
        old = np.zeros(lanes.shape, dtype=val.data.dtype)
        if lanes.any():
            operands = (
                TensorHandle(np.broadcast_to(operand.data, lanes.shape)[lanes], operand.dtype)
                for operand in (ptr, cmp, val)
            )
            old[lanes] = atomic_cas(self, *operands, sem, scope).data
        return TensorHandle(old, cmp.dtype.scalar)

    def counted_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        observation = current()
        if observation is not None:
            observation.count_dot(2 * int(d.data.size) * int(a.data.shape[-1]))
            if observation.samples:
                return _made_up(observation, d.data.shape, d.dtype)
        return dot(self, a, b, d, *rest, **named)

    builder.create_load, builder.create_store = (
        _unmasked(builder.create_load),
        _unmasked(builder.create_store),
    )
    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot = rmw, cas, counted_dot
    TritonSemantic._load_legacy = _with_true_tensors(TritonSemantic._load_legacy)
    for name in _CARRIERS:
        setattr(builder, f"create_{name}", _carrying(getattr(builder, f"create_{name}")))
    for owner in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
        owner.materialize_pointers = _based(owner.materialize_pointers)


def _unmasked(method: Callable[..., Any]) -> Callable[..., Any]:
    """An access without a mask in the kernel; the interpreter makes a mask of ones for it."""

    @functools.wraps(method)
    def access(self: Any, *args: Any, **named: Any) -> Any:
        observation = current()
        if observation is None:
            return method(self, *args, **named)
        observation.masked = False
        try:
            return method(self, *args, **named)
        finally:
            observation.masked = True

    return access


def _with_true_tensors(method: Callable[..., Any]) -> Callable[..., Any]:
    """A load tests whether `other` was given. In the interpreter a tensor of one value is false if the value is 0."""

    @functools.wraps(method)
    def load(*args: Any, **named: Any) -> Any:
        to_bool = vars(tl.tensor).get("__bool__")
        tl.tensor.__bool__ = lambda _: True
        try:
            return method(*args, **named)
        finally:
            if to_bool is None:
                del tl.tensor.__bool__
            else:
                tl.tensor.__bool__ = to_bool

    return load


def _bits(mask: Any) -> Any:
    return mask if mask is None or isinstance(mask, np.ndarray) else mask.data


def _guard(kind: str, ptrs: Any, mask: Any) -> Any:
    """The mask for an access: the kernel's mask, or a mask without the lanes that miss their tensor."""
    bits = _bits(mask)
    if bits is not None and bits.dtype != np.bool_:
        # A mask made by operators may hold integers, which numpy would take as indices.
        bits = bits.astype(np.bool_)
        mask = TensorHandle(bits, tl.int1)
    observation = current()
    if observation is None:
        return mask
    item_bytes = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
    inside = observation.touch(kind, ptrs.data, bits, item_bytes, getattr(ptrs, "origin", None))
    return mask if inside is None else TensorHandle(inside, tl.int1)


def _made_up(observation: Observation, shape: tuple[int, ...], dtype: Any) -> TensorHandle:
    return TensorHandle(observation.make_up(shape, interpreter._get_np_dtype(dtype)), dtype)


def _undefined(ptrs: Any, mask: Any) -> Any:
    """Values of masked-out lanes without `other`: NaN or a large integer; `None` if no lane is masked out.

    Triton leaves them undefined. The interpreter gives 0, as only some devices do.
    """
    if _bits(mask).all():
        return None
    dtype = ptrs.get_element_ty()
    return _of_bytes(ptrs, 0xFF if dtype.is_floating() else 1 if dtype.is_int1() else INTEGER)


def _garbage(ptrs: Any, kind: Poison) -> TensorHandle:
    """Values that lie outside of tensors. As a length or an index, -1 or 0 does the least harm; 0x3f is a small float."""
    dtype = ptrs.get_element_ty()
    byte = 0xFF if kind is Poison.NAN else 0x3F if dtype.is_floating() else 0
    return _of_bytes(ptrs, byte & 1 if dtype.is_int1() else byte)


def _of_bytes(ptrs: Any, byte: int) -> TensorHandle:
    """Values for the lanes of a load of which each byte is the same."""
    dtype = ptrs.get_element_ty()
    kind = np.dtype(interpreter._get_np_dtype(dtype))
    pattern = np.full(ptrs.data.size * kind.itemsize, byte, dtype=np.uint8)
    return TensorHandle(pattern.view(kind).reshape(ptrs.data.shape), dtype)


def _carrying(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def carry(self: Any, *args: Any, **named: Any) -> Any:
        result = method(self, *args, **named)
        if isinstance(result.dtype, tl.pointer_type):
            origin = next((arg.origin for arg in args if hasattr(arg, "origin")), None)
            if origin is not None:
                result.origin = origin
        return result

    return carry


def _based(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def materialize(self: Any, *args: Any) -> Any:
        pointers, masks = method(self, *args)
        pointers.bounded = True  # a block pointer defines its own padding, in practice zero
        if hasattr(self.base, "origin"):
            pointers.origin = self.base.origin
        return pointers, masks

    return materialize
