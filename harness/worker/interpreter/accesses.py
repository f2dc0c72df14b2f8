"""Every access of an interpreted kernel: counted, kept inside its tensor, and known by the tensor it was made from."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir as _ir
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.kit.poison import INTEGER

from . import reductions
from .observing import current, meet
from .races import Order
from .traffic import Origin

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


def install() -> None:
    """Count accesses and dots in the observation that runs. Once a process, after `bfloat16.install`."""
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
        if other is None and not getattr(ptrs, "bounded", False):
            other = _undefined(ptrs, mask)
            if other is not None:
                _note_undefined()
        _note_waiting(cache_modifier, volatile=bool(is_volatile))
        return load(
            self, ptrs, _guard("load", ptrs, mask), other, cache_modifier, eviction_policy, is_volatile
        )

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _note_values(ptrs, value)
        return store(self, ptrs, value, _guard("store", ptrs, mask), *rest, **named)

    def rmw(self: Any, operation: Any, ptr: Any, val: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        _note_order(*rest, **named)
        guarded = _guard("atomic", ptr, mask)
        found = atomic_rmw(self, operation, ptr, val, guarded, *rest, **named)
        undefined = _undefined(ptr, guarded)
        if undefined is not None:
            bits = guarded if isinstance(guarded, np.ndarray) else guarded.data
            found.data = np.where(bits, found.data, undefined.data)
        return found

    def cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any, **named: Any) -> Any:
        _note_order(*rest, **named)
        guarded = _guard("atomic", ptr, None)
        if guarded is None:
            return atomic_cas(self, ptr, cmp, val, *rest, **named)
        lanes = guarded.data
        old = np.zeros(lanes.shape, dtype=val.data.dtype)
        if lanes.any():
            parts = tuple(
                TensorHandle(np.broadcast_to(of.data, lanes.shape)[lanes], of.dtype) for of in (ptr, cmp, val)
            )
            old[lanes] = atomic_cas(self, *parts, *rest, **named).data
        return TensorHandle(old, cmp.dtype.scalar)

    def counted_dot(self: Any, a: Any, b: Any, d: Any, *rest: Any, **named: Any) -> Any:
        observation = current()
        if observation is not None:
            meet()
            observation.dot_flops += 2 * int(d.data.size) * int(a.data.shape[-1])
        return dot(self, a, b, d, *rest, **named)

    builder.create_load, builder.create_store = _plain(builder.create_load), _plain(builder.create_store)
    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_rmw, builder.create_atomic_cas, builder.create_dot = rmw, cas, counted_dot
    builder.create_barrier = _note_barrier
    TritonSemantic._load_legacy = _asking_what_is_given(TritonSemantic._load_legacy)
    for operations in (interpreter.ReduceOps, interpreter.ScanOps):
        operations.apply_impl = _meeting(operations.apply_impl)
    for name in _CARRIERS:
        setattr(builder, name, _carrying(getattr(builder, name)))
    for owner in (interpreter.BlockPointerHandle, interpreter.TensorDescHandle):
        owner.materialize_pointers = _based(owner.materialize_pointers)


def _plain(method: Callable[..., Any]) -> Callable[..., Any]:
    """An access that the kernel gave no mask; the interpreter gives it one of ones."""

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


def _asking_what_is_given(method: Callable[..., Any]) -> Callable[..., Any]:
    """A load asks whether it was given an `other`, as a compiler does; the interpreter's tensors of one value say whether it is 0."""

    @functools.wraps(method)
    def load(*args: Any, **named: Any) -> Any:
        value = vars(tl.tensor).get("__bool__")
        tl.tensor.__bool__ = lambda _: True
        try:
            return method(*args, **named)
        finally:
            if value is None:
                del tl.tensor.__bool__
            else:
                tl.tensor.__bool__ = value

    return load


def _guard(kind: str, ptrs: Any, mask: Any) -> Any:
    """The mask to use for an access: the kernel's own, or one without the lanes that miss their tensor.

    One that operators combined may hold integers, by which numpy would index.
    """
    bits = mask if mask is None or isinstance(mask, np.ndarray) else mask.data
    if bits is not None and bits.dtype != np.bool_:
        bits = bits.astype(np.bool_)
        mask = TensorHandle(bits, tl.int1)
    observation = current()
    if observation is None:
        return mask
    item_bytes = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
    kept = observation.touch(kind, ptrs.data, bits, item_bytes, getattr(ptrs, "origin", None))
    return mask if kept is None else TensorHandle(kept, tl.int1)


def _note_waiting(cache_modifier: Any, *, volatile: bool) -> None:
    """A volatile load is how programs wait for each other without an atomic."""
    observation = current()
    if observation is not None and observation.race_finder is not None:
        observation.race_finder.volatile = volatile or cache_modifier == _ir.CACHE_MODIFIER.CV


def _note_values(ptrs: Any, value: Any) -> None:
    observation = current()
    if observation is not None and observation.race_finder is not None:
        observation.race_finder.changing = functools.partial(_changing, ptrs, value)


def _changing(ptrs: Any, value: Any, active: Any) -> Any:
    """See `lanes.Changing`."""
    places = ptrs.data
    values = np.ascontiguousarray(np.broadcast_to(value.data, places.shape))
    words = values.view(f"u{values.itemsize}")
    lanes = np.ones(places.shape, dtype=bool) if active is None else active.reshape(places.shape)
    return (interpreter._interpreter.load(places, lanes, words, words.dtype) != words).ravel()


def _note_order(sem: Any, scope: Any) -> None:
    observation = current()
    if observation is not None and observation.race_finder is not None:
        observation.race_finder.order = Order(
            wide=scope != _ir.MEM_SYNC_SCOPE.CTA,
            acquires=sem in (_ir.MEM_SEMANTIC.ACQUIRE, _ir.MEM_SEMANTIC.ACQUIRE_RELEASE),
            releases=sem in (_ir.MEM_SEMANTIC.RELEASE, _ir.MEM_SEMANTIC.ACQUIRE_RELEASE),
        )


def _note_barrier(_: Any) -> None:
    observation = current()
    if observation is not None and observation.race_finder is not None:
        observation.race_finder.barrier()


def _meeting(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lanes have to wait for each other to make such a value, wherever it is of more than one warp."""

    @functools.wraps(method)
    def made(self: Any, operands: Any) -> Any:
        if reductions.is_across_warps(operands[0].handle.data.shape, self.axis):
            meet()
        return method(self, operands)

    return made


def _note_undefined() -> None:
    observation = current()
    if observation is not None:
        observation.note_undefined_lanes()


def _undefined(ptrs: Any, mask: Any) -> Any:
    """What lanes that a mask leaves out hold where no `other` was given: anything, so NaN or a large integer here.

    The interpreter gives them 0, which some devices do and others do not. `None` where there are no such lanes.
    """
    bits = mask if isinstance(mask, np.ndarray) else mask.data
    if bits.all():
        return None
    dtype = ptrs.get_element_ty()
    kind = np.dtype(interpreter._get_np_dtype(dtype))
    byte = 0xFF if dtype.is_floating() else 1 if dtype.is_int1() else INTEGER
    pattern = np.full(ptrs.data.size * kind.itemsize, byte, dtype=np.uint8)
    return TensorHandle(pattern.view(kind).reshape(ptrs.data.shape), dtype)


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
        pointers.bounded = (
            True  # the padding of block pointers is theirs to choose, and zero by default in practice
        )
        if hasattr(self.base, "origin"):
            pointers.origin = self.base.origin
        return pointers, masks

    return materialize
