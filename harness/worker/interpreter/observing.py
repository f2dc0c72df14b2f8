"""The observation that runs: what kernels do is noted in it, and why this device cannot judge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from .traffic import Observation

Watching = TypeVar("Watching", bound=Observation)
_running: list[Observation] = []


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
    if observation is not None and observation.race_finder is not None:
        observation.race_finder.meet()


def cannot(why: str) -> UnsupportedHere:
    """Note in the running observation that the interpreter cannot judge this, and return what to raise."""
    observation = current()
    if observation is not None and observation.unsupported is None:
        observation.unsupported = why
    return UnsupportedHere(why)
