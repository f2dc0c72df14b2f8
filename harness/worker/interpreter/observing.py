"""The current observation: the interpreter notes what kernels do in it, and why this device cannot judge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from .known_memory import KnownMemory
from .traffic import Observation

Watching = TypeVar("Watching", bound=Observation)
_running: list[Observation] = []


class UnsupportedHere(Exception):
    """The interpreter cannot run this kernel correctly. Says nothing about the kernel."""


@contextmanager
def observe(
    inputs: Mapping[str, Any], *, zero_lanes: bool = False, known: KnownMemory | None = None
) -> Iterator[Observation]:
    """Count what kernels do until the block ends.

    Of each tensor in `inputs`, kernels may touch only its own elements, not the rest of its storage. `zero_lanes`, `known`: see
    `Observation`. Exceptions of the candidate pass through; check `unsupported` before them.
    """
    observation = Observation(zero_lanes=zero_lanes, known=known)
    observation.admit(inputs)
    with running(observation):
        yield observation


@contextmanager
def running(observation: Watching) -> Iterator[Watching]:
    """Make this the current observation until the block ends."""
    _running.append(observation)
    try:
        yield observation
    finally:
        _running.remove(observation)


def current() -> Observation | None:
    """The current observation; `None` outside of `running`, where nothing is counted."""
    return _running[-1] if _running else None


def cannot(why: str) -> UnsupportedHere:
    """Note in the current observation that the interpreter cannot judge this, and return the error to raise."""
    observation = current()
    if observation is not None and observation.unsupported is None:
        observation.unsupported = why
    return UnsupportedHere(why)
