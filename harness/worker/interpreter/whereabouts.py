"""
Addresses as numbers, as another device gives them: memory lies elsewhere there (`elsewhere`), at multiples of 512 bytes.

A kernel that turns pointers into integers, or is given addresses as such, may look at their residue, or pass them on; it must not matter where memory lies.
Numbers that are turned back into pointers lead to where it lies here. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle

from .observing import cannot, current, is_elsewhere
from .places import Addresses
from .traffic import Observation

FIRST = 0x6000_0000_0000
"""Where no allocation of a Linux process lies: between programs and their heaps, and what is mapped."""
ROOM_BITS = 33
"""Of each allocation, which begins in the middle, so that pointers may lead out of it on both sides."""
MOST = 2048
ALIGNMENT = 512


def install() -> None:
    """Once a process, after `accesses.install`."""
    builder = interpreter.InterpreterBuilder
    builder.create_ptr_to_int = _told(builder.create_ptr_to_int)
    builder.create_int_to_ptr = _led_back(builder.create_int_to_ptr)


def _told(method: Callable[..., Any]) -> Callable[..., Any]:
    def create_ptr_to_int(self: Any, src: Any, dst_type: Any) -> Any:
        observation = current()
        if observation is None or not is_elsewhere():
            return method(self, src, dst_type)
        origin = getattr(src, "origin", None)
        home = origin.storage if origin is not None else None
        return method(self, TensorHandle(moved(observation, src.data, home), src.dtype), dst_type)

    return create_ptr_to_int


def _led_back(method: Callable[..., Any]) -> Callable[..., Any]:
    def create_int_to_ptr(self: Any, src: Any, dst_type: Any) -> Any:
        result = method(self, src, dst_type)
        observation = current()
        if observation is not None and observation.places and is_elsewhere():
            result.data = led_back(observation, result.data)
        return result

    return create_int_to_ptr


def moved(observation: Observation, addresses: Addresses, home: int | None = None) -> Addresses:
    """Addresses in the allocation that begins at `home`, or that the first lies in, as they are elsewhere."""
    if home is None:
        home = _home(observation, int(np.ravel(addresses)[0]))
    if home is None:
        return addresses
    return addresses + np.uint64((place(observation, home) - home) % (1 << 64))


def led_back(observation: Observation, addresses: Addresses) -> Addresses:
    """Addresses as they are here, of such as lie elsewhere and others."""
    back = addresses
    for home, there in observation.places.items():
        inside = (back >> np.uint64(ROOM_BITS)) == np.uint64(there >> ROOM_BITS)
        back = np.where(inside, back + np.uint64((home - there) % (1 << 64)), back)
    return back


def _home(observation: Observation, address: int) -> int | None:
    """Where the allocation begins that an address lies in."""
    for start, known in observation.allocations.items():
        if known.span.start <= address <= known.span.end:
            return start
    return None


def place(observation: Observation, home: int) -> int:
    """Where an allocation that begins at `home` does so elsewhere; which of two comes first is another matter on each device."""
    if home not in observation.places:
        number = len(observation.places)
        if number >= MOST:
            raise cannot(
                f"kernels are given, or turn into integers, the addresses of more than {MOST} tensors"
            )
        number ^= observation.programs.elsewhere % MOST
        middle = FIRST + (number << ROOM_BITS) + (1 << ROOM_BITS - 1)
        observation.places[home] = middle + (number * 5 + 3) % 64 * ALIGNMENT
    return observation.places[home]
