"""One launch of a kernel, executed by its IR on the memory of tensors."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from triton.runtime.driver import driver

from harness.worker.interpreter.launches import tensors_in
from harness.worker.interpreter.traffic import LaunchRecord, Observation

from .endings import Unread
from .kinds import Kind, UnknownKind, kind_of
from .lowering import Readable
from .machine import Machine, Module
from .memory import Memory
from .together import shares


def launch(
    kernel: Readable,
    grid: tuple[int, int, int],
    arguments: Mapping[str, Any],
    options: Mapping[str, Any],
    observation: Observation,
) -> None:
    """
    Runs all programs, from the first to the last; what they store is noted in the observation.

    `Wrong` where one does what cannot be done, `NotLowered` where the compiler refuses the kernel, `Unread` where it holds what
    is not known here.
    """
    module, given = kernel.read(arguments, options)
    for value in arguments.values():
        for tensor in tensors_in(value):
            observation.origin(tensor)
    x, y, z = grid
    observation.launch(LaunchRecord(kernel.fn.__name__, grid, x * y * z, kernel.fn, arguments, options))
    values = _bound(module, given)
    is_cuda = driver.active.get_current_target().backend == "cuda"
    machine = Machine(module, Memory(observation, is_cuda=is_cuda), grid, observation.programs.elsewhere)
    for places in shares(itertools.product(range(x), range(y), range(z)), module.at_once):
        machine.programs(places, values)


def _bound(module: Module, given: tuple[Any, ...]) -> list[Any]:
    """Values for the parameters of the lowered kernel."""
    flat: list[Any] = []
    for value in given:
        flat.extend(
            _parts(value, module.parameters[len(flat) :]) if hasattr(value, "block_shape") else [value]
        )
    if len(flat) != len(module.parameters):
        raise Unread(f"{len(module.parameters)} parameters for {len(flat)} arguments")
    try:
        return [_value(value, kind_of(kind)) for value, kind in zip(flat, module.parameters, strict=True)]
    except UnknownKind as unknown:
        raise Unread(str(unknown)) from unknown


def _parts(descriptor: Any, kinds: Sequence[str]) -> Iterator[Any]:
    """What a descriptor is taken apart into: memory, shape, strides, flags of which the first is its padding, and shape and strides again."""
    sizes = (*descriptor.shape, *descriptor.strides)
    yield descriptor.base
    yield from sizes
    flags = itertools.takewhile(lambda kind: kind == "i1", kinds[1 + len(sizes) :])
    yield from (at == 0 and descriptor.padding == "nan" for at, _ in enumerate(flags))
    yield from sizes


def _value(value: Any, kind: Kind) -> Any:
    if isinstance(value, torch.Tensor) or hasattr(value, "data_ptr"):
        return np.int64(value.data_ptr())
    if isinstance(value, int):
        bits = 8 * kind.dtype.itemsize
        if kind.dtype.kind in "iu":
            return np.array((value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))).astype(kind.dtype)[
                ()
            ]
        if kind.dtype.kind == "b":
            return np.bool_(value)
    return np.array(value).astype(kind.dtype)[()]
