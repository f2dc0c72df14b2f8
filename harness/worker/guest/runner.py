# ruff: noqa: D102 -- the methods of `InterpreterRunner` are documented in `Runner`
"""The device of a guest: `Runner` is what the guest needs, `InterpreterRunner` runs kernels on the CPU, `gpu_runner` on a GPU."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from harness.hardware.targets import target
from harness.linux import syscalls
from harness.wire.messages.guest import EXCEPTION, Call, FailedKind, Load, SharedAt
from harness.worker.interpreter import interpreter
from harness.worker.interpreter.known_memory import KnownMemory
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit import arena
from harness.worker.triton_hooks.autotuning import policy


class Runner(ABC):
    """The device of one guest. The guest calls `prepare` once, and `open` to `give_back` in this order for each call.

    The defaults are right where kernels run at once, on memory that is the judge's own.
    """

    @abstractmethod
    def prepare(self, load: Load) -> None:
        """Make the process ready, before the candidate's module is imported."""

    def reach(self, memory: SharedAt) -> str:
        """Why the judge's device memory cannot be opened; empty if it can."""
        return "there is no device"

    @abstractmethod
    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """The arguments by name, as tensors on the device with guard zones around them. Closes `descriptor`.

        With `call.again`, the same tensors as in the last call with `call.hold`, filled from the judge's memory again.
        """

    def importing(self) -> AbstractContextManager[Observation | None]:
        """Observe the import of the candidate's module, which may make tables; `None` if memory is not followed here."""
        return nullcontext()

    @abstractmethod
    def observe(self, inputs: Mapping[str, torch.Tensor]) -> AbstractContextManager[Observation]:
        """Observe what kernels do until the block ends."""

    def settle(self, outputs: Sequence[torch.Tensor]) -> str:
        """Wait for the work of a call that returned. Returns the work that was still running, in words, or nothing.

        Raises the error with which the work ended.
        """
        return ""

    def deliver(self, output: torch.Tensor) -> int | None:
        """Copy a contiguous output into the judge's memory and return its place; `None` if it goes back as bytes."""
        return None

    def give_back(self) -> None:  # noqa: B027 (a default)
        """Write inputs and delivered outputs back to the judge's memory."""

    def kind_of(self, error: BaseException) -> FailedKind:
        """The kind of failure for an exception of the candidate's call: `exception`, or a kind of the device."""
        return EXCEPTION

    @abstractmethod
    def threads(self) -> int:
        """Number of threads besides the main thread and those of the device's driver."""


class InterpreterRunner(Runner):
    """Triton's interpreter on the CPU."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}
        self._known = KnownMemory()

    def prepare(self, load: Load) -> None:
        interpreter.prepare(target(load.target))

    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """Return the arguments in the arena of `descriptor`, which is closed.

        A call that repeats the one before gets the same tensors, if they were held; the judge has written new values into their
        memory.
        """
        assert descriptor is not None
        policy.number, policy.rehearses = call.config, True
        arguments = self._held
        if not call.again:
            arguments = arena.open_arguments(descriptor, call.arena_bytes, call.arguments)
        os.close(descriptor)
        self._held = arguments if call.hold else {}
        return arguments

    def importing(self) -> AbstractContextManager[Observation | None]:
        return interpreter.observe({}, known=self._known)

    def observe(self, inputs: Mapping[str, torch.Tensor]) -> AbstractContextManager[Observation]:
        self._known.forget_freed()
        return interpreter.observe(inputs, known=self._known)

    def threads(self) -> int:
        return max(threading.active_count(), syscalls.thread_count()) - 1
