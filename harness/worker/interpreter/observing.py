"""The observation that runs: what kernels do is noted in it, and why this device cannot judge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from .traffic import Observation

Watching = TypeVar("Watching", bound=Observation)
_running: list[Observation] = []
_asked = [0]
"""How often somebody asked which device it is."""


class UnsupportedHere(Exception):
    """The interpreter cannot run this kernel rightly; says nothing of the kernel."""


@contextmanager
def observe(inputs: Mapping[str, Any]) -> Iterator[Observation]:
    """
    Count what kernels do until the block ends.

    Of each tensor in `inputs`, only its own elements may be touched, not the rest of its storage. Exceptions of the candidate pass;
    look at `unsupported` first even then.
    """
    observation = Observation()
    observation.admit(inputs)
    with running(observation):
        yield observation


@contextmanager
def running(observation: Watching) -> Iterator[Watching]:
    """Let kernels be seen by this observation until the block ends."""
    _running.append(observation)
    try:
        yield observation
    finally:
        _running.remove(observation)


def current() -> Observation | None:
    """The observation that runs; `None` outside of one, where kernels run without being counted."""
    return _running[-1] if _running else None


def meet() -> None:
    """The lanes of the program that runs have to wait for each other."""
    observation = current()
    if observation is not None:
        observation.programs.meet()


def is_backwards() -> bool:
    """Whether the programs of launches are run from the last to the first, and their lanes likewise."""
    observation = current()
    return observation is not None and observation.programs.backwards


def cannot(why: str) -> UnsupportedHere:
    """Note in the running observation that the interpreter cannot judge this, and return what to raise."""
    observation = current()
    if observation is not None and observation.unsupported is None:
        observation.unsupported = why
    return UnsupportedHere(why)


def device() -> int:
    """Whose arithmetic it is, of many devices (see `elsewhere`); 0 for this one's."""
    _asked[0] += 1
    return _device()


def times_asked() -> int:
    """How often `device` told so far: whatever did not ask gives the same on all others."""
    return _asked[0]


def is_elsewhere() -> bool:
    """Whether arithmetic is another device's."""
    return _device() != 0


def _device() -> int:
    observation = current()
    return 0 if observation is None else observation.programs.elsewhere


def fuses() -> bool:
    """Whether the launch that runs lets a compiler fuse products with sums."""
    observation = current()
    return observation is None or observation.programs.fuses
