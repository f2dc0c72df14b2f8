# ruff: noqa: D102 -- methods and arguments are those of Triton's own class
"""The builder of interpreted kernels: Triton's, with every access counted and kept inside its tensor.

A compiler makes wide accesses of a `tl.multiple_of`, which the interpreter ignores. It may drop code by a `tl.assume`, at which
the interpreter stops; authors write false ones (`tl.assume(pid > 0)`) that drop nothing. Here both are noted. `tl.max_contiguous`
and `tl.max_constancy` are not checked: authors also write them for indices that wrap around (`rows % m`), and no store ever
writes the wrong lanes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton._C.libtriton import ir
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from harness.worker.interpreter.semantics.arithmetic import Arithmetic, is_bfloat16, refuse_float8
from harness.worker.interpreter.semantics.float_conversions import (
    bfloat16_bits,
    bfloat16_rounded,
    bfloat16_values,
)
from harness.worker.interpreter.tapes.tracing import Differs
from harness.worker.kit.poison import INTEGER, Poison

from .places import candidate_line, elements_text, indices_text
from .traffic import MAX_REPORTS, Observation, cannot

ALIGNMENT = 16
"""Bytes. Whether an address is a multiple of more depends on the allocator, not on the kernel."""
_VOLATILE = ir.CACHE_MODIFIER.CV
_WORD = np.dtype(np.uint16)
_NO_SWAP = "the interpreter has no compare and swap of bfloat16, so this device cannot judge it"


def _carrying(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that returns a pointer into the tensor of its argument: the result knows the tensor too."""

    @functools.wraps(method)
    def carry(self: Any, *args: Any, **named: Any) -> Any:
        """Call the method, and let a resulting pointer know the tensor that its argument belongs to."""
        result = method(self, *args, **named)
        if isinstance(result.dtype, tl.pointer_type):
            origin = next((arg.origin for arg in args if hasattr(arg, "origin")), None)
            if origin is not None:
                result.origin = origin
        return result

    return carry


class WatchedBuilder(Arithmetic):
    """Notes accesses, dots and broken promises in the observation of the running launch."""

    observation: Observation

    def __init__(self) -> None:
        super().__init__()
        # The check for overflows computes each sum twice, a sixth of all the time, and reports only if `debug` is on.
        self.options: Any = dataclasses.replace(self.options, sanitize_overflow=False)

    create_addptr = _carrying(Arithmetic.create_addptr)
    create_splat = _carrying(Arithmetic.create_splat)
    create_unsplat = _carrying(Arithmetic.create_unsplat)
    create_broadcast = _carrying(Arithmetic.create_broadcast)
    create_expand_dims = _carrying(Arithmetic.create_expand_dims)
    create_reshape = _carrying(Arithmetic.create_reshape)
    create_trans = _carrying(Arithmetic.create_trans)
    create_bitcast = _carrying(Arithmetic.create_bitcast)

    def create_load(self, ptr: Any, cache_modifier: Any, eviction_policy: Any, is_volatile: Any) -> Any:
        with self._without_mask():
            return super().create_load(ptr, cache_modifier, eviction_policy, is_volatile)

    def create_store(self, ptr: Any, value: Any, cache_modifier: Any, eviction_policy: Any) -> Any:
        with self._without_mask():
            return super().create_store(ptr, value, cache_modifier, eviction_policy)

    def create_masked_load(
        self,
        ptrs: Any,
        mask: Any,
        other: Any,
        cache_modifier: Any,
        eviction_policy: Any,
        is_volatile: Any,
    ) -> Any:
        """Load as Triton's builder does, but only from the tensor that the pointers belong to, and note what is wrong.

        Lanes outside the tensor get a value that shows where it is used. Masked-off lanes without `other` hold a NaN or a large
        integer, unless `zero_lanes`. If the observation only samples, nothing is loaded and the values are made up.
        """
        observation, dtype = self.observation, ptrs.get_element_ty()
        if is_volatile or cache_modifier == _VOLATILE:
            observation.synchronizes = True
        guarded = self._guard("load", ptrs, mask)
        if observation.samples:
            return self._made_up(ptrs.data.shape, dtype)
        if other is None and not getattr(ptrs, "bounded", False):
            undefined = _undefined(ptrs, mask)
            if undefined is not None:
                observation.undefined_lanes.setdefault(candidate_line()[1])
            if not observation.zero_lanes:
                other = undefined
        if is_bfloat16(dtype):
            loaded = _load_bfloat16(ptrs, guarded, other)
        else:
            loaded = super().create_masked_load(
                ptrs, guarded, other, cache_modifier, eviction_policy, is_volatile
            )
        if guarded is not mask and observation.outside is not None:
            missed = _bits(mask).astype(np.bool_) & ~_bits(guarded)
            loaded.data = np.where(missed, _garbage(ptrs, observation.outside).data, loaded.data)
        return loaded

    def create_masked_store(
        self, ptrs: Any, value: Any, mask: Any, cache_modifier: Any, eviction_policy: Any
    ) -> Any:
        """Store as Triton's builder does, but only inside the tensor that the pointers belong to; other lanes are noted."""
        guarded = self._guard("store", ptrs, mask)
        if self.observation.samples:
            return None
        if is_bfloat16(ptrs.get_element_ty()):
            return interpreter._interpreter.store(ptrs.data, bfloat16_bits(value.data), _bits(guarded))
        return super().create_masked_store(ptrs, value, guarded, cache_modifier, eviction_policy)

    def create_atomic_rmw(self, operation: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> Any:
        """Run an atomic operation as Triton's builder does, in the lanes that are inside the tensor; return the old values.

        Masked-off lanes return values as undefined as on a device. Raises for 8-bit floats.
        """
        guarded = self._guard("atomic", ptr, mask)
        if self.observation.samples:
            return self._made_up(ptr.data.shape, val.dtype.scalar)
        refuse_float8(val)
        if is_bfloat16(val.dtype):
            old = _add_bfloat16(ptr, val, guarded)
        else:
            old = super().create_atomic_rmw(operation, ptr, val, guarded, sem, scope)
        undefined = _undefined(ptr, guarded)
        if undefined is not None:
            old.data = np.where(_bits(guarded), old.data, undefined.data)
        return old

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        """Compare and swap as Triton's builder does, in the lanes that are inside the tensor; all other lanes get 0.

        Raises for bfloat16, which the interpreter cannot swap, and for 8-bit floats.
        """
        guarded = self._guard("atomic", ptr, None)
        if self.observation.samples:
            return self._made_up(ptr.data.shape, cmp.dtype.scalar)
        refuse_float8(val)
        if is_bfloat16(val.dtype):
            raise cannot(_NO_SWAP)
        if guarded is None:
            return super().create_atomic_cas(ptr, cmp, val, sem, scope)
        lanes = guarded.data
        old = np.zeros(lanes.shape, dtype=val.data.dtype)
        if lanes.any():
            operands = [
                TensorHandle(np.broadcast_to(operand.data, lanes.shape)[lanes], operand.dtype)
                for operand in (ptr, cmp, val)
            ]
            old[lanes] = super().create_atomic_cas(*operands, sem, scope).data
        return TensorHandle(old, cmp.dtype.scalar)

    def create_dot(self, a: Any, b: Any, d: Any, *rest: Any) -> Any:
        self.observation.dot_flops += 2 * int(d.data.size) * int(a.data.shape[-1])
        if self.observation.samples:
            return self._made_up(d.data.shape, d.dtype)
        return super().create_dot(a, b, d, *rest)

    def create_gather(self, src: Any, indices: Any, axis: int) -> Any:
        """On a device, an index outside of the source reads the memory beside it; numpy counts from the end."""
        size = src.data.shape[axis]
        lanes = indices.data.astype(np.int64)
        outside = (lanes < 0) | (lanes >= size)
        if outside.any():
            self._report("tl.gather", "index", "its source", lanes[outside], size)
            lanes = np.where(outside, size - 1, lanes)
        return TensorHandle(np.take_along_axis(src.data, lanes, axis=axis), src.dtype.scalar)

    def create_histogram(self, data: Any, bins: int, mask: Any) -> Any:
        """On a device, a value outside of the bins counts in an arbitrary bin; numpy drops it, or puts it into the last bin.

        Lanes outside of the mask may hold any value.
        """
        values = data.data.astype(np.int64)
        if mask is not None:
            values = values[np.broadcast_to(mask.data, values.shape)]
        outside = (values < 0) | (values >= bins)
        if outside.any():
            self._report("tl.histogram", "value", "its bins", values[outside], bins)
            values = values % bins
        return TensorHandle(np.bincount(values, minlength=bins).astype(np.int32), tl.int32)

    def create_assume(self, condition: Any) -> None:
        if not np.all(condition.data):
            self.observation.note_false_promise("`tl.assume` names a condition that does not hold")

    def create_multiple_of(self, handle: Any, numbers: Sequence[int]) -> None:
        """Note values that are no multiples of their number; `numbers` has one for each dimension. Not a method of Triton's."""
        if handle.data.dtype.kind not in "iu":
            return
        pointers = isinstance(handle.dtype, tl.pointer_type)
        item_bytes = max(int(handle.get_element_ty().primitive_bitwidth) // 8, 1) if pointers else 0
        for axis, number in enumerate(numbers):
            wrong = _not_divided(handle.data, axis, number, item_bytes)
            if wrong.size:
                value = "an address is not" if pointers else f"{int(wrong.ravel()[0])} is not"
                self.observation.note_false_promise(
                    f"`tl.multiple_of` promises multiples of {number}, and {value}"
                )
                return

    def create_combination(self, operation: Any, handles: Any, types: Any) -> Any:
        """The reduction or scan of tensors, as an operation of its own. Not a method of Triton's."""
        refuse_float8(*handles)
        tensors = tuple(tl.tensor(handle, kind) for handle, kind in zip(handles, types, strict=True))
        results = operation.apply_impl(tensors)
        results = results if isinstance(results, (list, tuple)) else (results,)
        for result in results:
            result.handle.type = result.type
        return results[0].handle if len(results) == 1 else tuple(result.handle for result in results)

    @contextmanager
    def _without_mask(self) -> Iterator[None]:
        """An access without a mask in the kernel; the interpreter makes a mask of ones for it."""
        self.observation.masked = False
        try:
            yield
        finally:
            self.observation.masked = True

    def _guard(self, kind: str, ptrs: Any, mask: Any) -> Any:
        """The mask for an access: the kernel's mask, or a mask without the lanes that miss their tensor."""
        bits = _bits(mask)
        if bits is not None and bits.dtype != np.bool_:
            # A mask made by operators may hold integers, which numpy would take as indices.
            bits = bits.astype(np.bool_)
            mask = TensorHandle(bits, tl.int1)
        item_bytes = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
        inside = self.observation.touch(kind, ptrs.data, bits, item_bytes, getattr(ptrs, "origin", None))
        return mask if inside is None else TensorHandle(inside, tl.int1)

    def _made_up(self, shape: tuple[int, ...], dtype: Any) -> TensorHandle:
        return TensorHandle(self.observation.make_up(shape, interpreter._get_np_dtype(dtype)), dtype)

    def _report(self, name: str, noun: str, place: str, wrong: NDArray[np.int64], size: int) -> None:
        """Note a wrong index. `Differs` if the kernel has to run in Python to find its line."""
        file, line = candidate_line()
        if not line:
            raise Differs
        start = f"{file} line {line}: `{name}`"
        misses = self.observation.missed_loads
        if len(misses) < MAX_REPORTS and not any(miss.startswith(start) for miss in misses):
            where = indices_text(wrong.reshape(-1)).replace("index", noun, 1)
            misses.append(
                f"{start} of {elements_text(wrong.size)} outside of {place} ({where}, size {size}) "
                f"in program {self.observation.position}"
            )


def _bits(mask: Any) -> Any:
    return mask if mask is None or isinstance(mask, np.ndarray) else mask.data


def _load_bfloat16(ptrs: Any, mask: Any, other: Any) -> Any:
    fill = np.zeros_like(ptrs.data, dtype=_WORD) if other is None else bfloat16_bits(other.data)
    words = interpreter._interpreter.load(ptrs.data, _bits(mask), fill, _WORD)
    return TensorHandle(bfloat16_values(words), tl.bfloat16)


def _add_bfloat16(ptr: Any, val: Any, mask: Any) -> Any:
    """Triton allows only addition for bfloat16. Lanes run one by one, as two lanes may share an address."""
    native = interpreter._interpreter
    addresses, terms = np.ravel(ptr.data), np.ravel(val.data)
    old = np.zeros(addresses.shape, dtype=np.float32)
    active, zero = np.ones(1, dtype=bool), np.zeros(1, dtype=_WORD)
    for lane in np.flatnonzero(np.broadcast_to(mask.data, ptr.data.shape)):
        address = addresses[lane : lane + 1]
        old[lane] = bfloat16_values(native.load(address, active, zero, _WORD))[0]
        total = bfloat16_rounded(old[lane : lane + 1] + terms[lane])
        native.store(address, bfloat16_bits(total), active)
    return TensorHandle(old.reshape(ptr.data.shape), tl.bfloat16)


def _undefined(ptrs: Any, mask: Any) -> Any:
    """Return values for the masked-off lanes of a load without `other`: NaN or a large integer; `None` if no lane is masked
    off.

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


def _not_divided(data: NDArray[Any], axis: int, number: int, item_bytes: int) -> NDArray[Any]:
    """The values that are no multiples of a promised number, or of its power of two, as a compiler uses only that.

    A compiler applies the promise only to the first of neighbouring lanes. `item_bytes`: of a pointer's elements; 0: no pointer.
    """
    divisor = number & -number
    if item_bytes:
        divisor = min(divisor, ALIGNMENT)
    lanes = np.moveaxis(data, axis, 0)
    # Any neighbours count: indices that wrap around may do so after the first lane.
    neighbours = bool((np.diff(lanes.astype(np.int64), axis=0) == (item_bytes or 1)).any())
    if neighbours:
        lanes = lanes[:1]
    elif (item_bytes or data.ndim > 1) and len(lanes) > 1:
        return lanes[:0]  # the promise does not say how wide this axis is read
    wrong: NDArray[Any] = lanes[(lanes & max(divisor - 1, 0)) != 0]
    return wrong
