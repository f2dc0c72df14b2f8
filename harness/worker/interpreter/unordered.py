"""
Stores that come in no order: where programs run backwards, another value stays than where they run forwards.

Of lanes of one store that meet, of lanes of one program that store one after the other without a point at which they all meet,
and of programs that hand nothing over. Where the value counts, it shows in the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .observing import current, is_backwards

Mask = NDArray[np.bool_]


def changing(ptrs: Any, value: Any, active: Any) -> Any:
    """See `Changing`."""
    places = ptrs.data
    values = np.ascontiguousarray(np.broadcast_to(value.data, places.shape))
    words = values.view(f"u{values.itemsize}")
    lanes = np.ones(places.shape, dtype=bool) if active is None else active.reshape(places.shape)
    return (interpreter._interpreter.load(places, lanes, words, words.dtype) != words).ravel()


def without_the_last(ptrs: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
    """A store without the lanes that may as well have stored before those who did already.

    Lanes of one program leave what differs from the last value, so from what stays when they run forwards; of programs the
    first that stores another value than the one that ran first, so than the one that comes last when they run forwards. Programs
    that are run in order leave the first one's value.
    """
    observation = current()
    races = observation.programs if observation is not None else None
    if races is None or (races.contested is None and races.rivals is None):
        return ptrs, value, mask
    places = ptrs.data
    nobody = np.zeros(places.size, dtype=bool)
    contested = nobody if races.contested is None else races.contested
    rivals = nobody if races.rivals is None else races.rivals
    words = np.ascontiguousarray(np.broadcast_to(value.data, places.shape))
    words = words.view(f"u{words.itemsize}").reshape(-1)
    now = _words_at(places, contested | rivals, words)
    kept = words.copy()
    withheld = contested & (now != words)
    addresses = places.reshape(-1)
    for lane in np.flatnonzero(contested).tolist():
        before = races.lanes.withheld.get(int(addresses[lane]))
        if withheld[lane]:
            races.lanes.withheld[int(addresses[lane])] = int(words[lane])
        elif before is not None:
            kept[lane] = before
    rivals = rivals & ~contested
    if races.in_order:
        withheld |= rivals & (now != words)
    else:
        for lane in np.flatnonzero(rivals).tolist() if races.disputed else ():
            withheld[lane] |= int(addresses[lane]) in races.disputed
        races.disputed.update(addresses[rivals & (now != words)].tolist())
    bits = mask if isinstance(mask, np.ndarray) else mask.data
    active = np.broadcast_to(bits, places.shape) & ~withheld.reshape(places.shape)
    values = kept.view(value.data.dtype).reshape(places.shape)
    return ptrs, TensorHandle(values, value.dtype), TensorHandle(np.ascontiguousarray(active), tl.int1)


def atomic(change: Callable[..., Any], lanes: tuple[Any, ...], *rest: Any, **named: Any) -> Any:
    """What an atomic finds; of pointers and what else it takes for each lane, with its last lane first where programs run backwards."""
    with _stores_after(lanes[0]):
        if not is_backwards():
            return change(*lanes, *rest, **named)
        return _flipped(change(*map(_flipped, lanes), *rest, **named))


def without_early_sums(found: Any) -> Any:
    """What an atomic found, with NaN where it may as well have come before other programs' atomics: of floats, which nobody counts by."""
    observation = current()
    early = observation.programs.early if observation is not None else None
    if early is None or not found.dtype.is_floating():
        return found
    return TensorHandle(
        np.where(early.reshape(found.data.shape), np.nan, found.data).astype(found.data.dtype), found.dtype
    )


@contextmanager
def _stores_after(ptrs: Any) -> Iterator[None]:
    """An atomic on places to which other lanes stored before it, or may store only now."""
    observation = current()
    late = observation.programs.contested if observation is not None else None
    if late is None:
        yield
        return
    size = max(ptrs.get_element_ty().primitive_bitwidth // 8, 1)
    words = _words_at(ptrs.data, late, np.zeros(ptrs.data.size, dtype=f"u{size}"))
    yield
    shape = ptrs.data.shape
    interpreter._interpreter.store(ptrs.data, words.reshape(shape), late.reshape(shape))


def _words_at(places: Any, lanes: Mask, other: Any) -> Any:
    """What is there, as bits; `other` for the lanes that are not asked for."""
    shape = places.shape
    found = interpreter._interpreter.load(places, lanes.reshape(shape), other.reshape(shape), other.dtype)
    return found.reshape(-1)


def with_another_last(ptrs: Any, value: Any, mask: Any) -> tuple[Any, Any, Any]:
    """A store's lanes in an order in which, wherever they meet with different values, another value is the last."""
    places = np.ravel(ptrs.data)
    if places.size < 2 or (places[1:] > places[:-1]).all():
        return ptrs, value, mask
    shape = ptrs.data.shape
    values = np.ascontiguousarray(np.broadcast_to(value.data, shape)).reshape(-1)
    bits = mask if isinstance(mask, np.ndarray) else mask.data
    active = np.broadcast_to(bits, shape).reshape(-1)
    words = values.view(f"u{values.itemsize}")  # NaN is the same as NaN
    met, place = np.unique(places, return_inverse=True)
    last = np.zeros(met.size, dtype=words.dtype)
    last[place[active]] = words[active]
    order = np.argsort(words != last[place], kind="stable")
    return (
        TensorHandle(places[order].reshape(shape), ptrs.dtype),
        TensorHandle(values[order].reshape(shape), value.dtype),
        TensorHandle(active[order].reshape(shape), tl.int1),
    )


def _flipped(handle: Any) -> Any:
    """With its lanes from the last to the first, so that of several that meet in one place another one is the last."""
    if isinstance(handle, np.ndarray):
        return np.ascontiguousarray(handle.reshape(-1)[::-1]).reshape(handle.shape)
    return handle if handle.data.size < 2 else TensorHandle(_flipped(handle.data), handle.dtype)
