"""
Descriptors on devices that move tiles by an engine of their own (NVIDIA's TMA): a program's other accesses do not wait for it.

What is stored by a descriptor is there when the launch has ended; a barrier does not wait for it either. And the engine does not wait
for what the program's lanes stored. Touches the internals of Triton's interpreter (3.6 and 3.7).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from triton.runtime import interpreter

from harness.device import Target

from .observing import current

FIRST_WITH_ENGINE = 90
"""Compute capability; before, and on AMD, a descriptor's accesses become those of lanes."""


def install(target: Target) -> None:
    """Say of each access whether it goes by a descriptor. Once a process, after `accesses.install`."""
    if target.backend != "cuda" or int(target.name.removeprefix("sm_")) < FIRST_WITH_ENGINE:
        return
    builder = interpreter.InterpreterBuilder
    for name in ("create_descriptor_load", "create_descriptor_store"):
        setattr(builder, name, _by_engine(getattr(builder, name)))


def _by_engine(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def access(self: Any, *args: Any, **named: Any) -> Any:
        observation = current()
        if observation is None:
            return method(self, *args, **named)
        observation.programs.by_engine = True
        try:
            return method(self, *args, **named)
        finally:
            observation.programs.by_engine = False

    return access
