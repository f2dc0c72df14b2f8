"""What a candidate runs on in its guest: the interpreter here, a GPU in `gpu.py`; the guest itself knows neither."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

from harness.hardware.targets import target
from harness.linux import syscalls
from harness.wire.guest_messages import Call, Load, SharedAt
from harness.worker.interpreter import interpreter, tuning
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit import arena
from harness.worker.recording import recorder


class Runner(Protocol):
    """One guest's device. The methods are called in the order in which they stand, the middle ones once a call."""

    def prepare(self, load: Load) -> None:
        """Makes the process ready, once, before the candidate's module is imported."""

    def reach(self, memory: SharedAt) -> str:
        """Why memory of the judge's cannot be opened; empty when it can."""

    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """The arguments by name, tensors on the device, guard zones around each. Closes `descriptor`.

        With `call.again` the very tensors of a call that was to `hold` them, filled from its memory anew.
        """

    def observe(self, inputs: Mapping[str, torch.Tensor]) -> AbstractContextManager[Observation]:
        """Watches what kernels do until the block ends."""

    def settle(self, outputs: Sequence[torch.Tensor]) -> str:
        """Waits for the work of a call that returned; what still ran by then, in words, or nothing.

        Raises what the work ended with.
        """

    def deliver(self, output: torch.Tensor) -> int | None:
        """Where in the judge's memory a contiguous output stands now; `None` where it has no room there."""

    def give_back(self) -> None:
        """Lets the judge see in its own memory what became of the inputs, and all that was delivered."""

    def kind_of(self, error: BaseException) -> str:
        """The kind of failure that an exception out of the candidate's call is: `exception`, or what the device tells."""

    def threads(self) -> int:
        """Threads of this process beside its own and those that the device's driver keeps."""


class InterpreterRunner:
    """Triton's interpreter: kernels run as they are called, on memory that is the judge's itself."""

    def __init__(self) -> None:
        self._held: dict[str, Any] = {}

    def prepare(self, load: Load) -> None:
        """See `Runner`."""
        interpreter.prepare(target(load.target))
        recorder.install()

    def reach(self, memory: SharedAt) -> str:
        """No judge of the interpreter's shares device memory."""
        return "there is no device"

    def open(self, descriptor: int | None, call: Call) -> dict[str, Any]:
        """See `Runner`."""
        assert descriptor is not None
        tuning.asked.config, tuning.asked.tunes = call.config, True
        arguments = self._held
        if not call.again:
            arguments = arena.open_arguments(descriptor, call.arena_bytes, call.arguments)
        os.close(descriptor)
        self._held = arguments if call.hold else {}
        return arguments

    def observe(self, inputs: Mapping[str, torch.Tensor]) -> AbstractContextManager[Observation]:
        """See `Runner`."""
        return interpreter.observe(inputs)

    def settle(self, outputs: Sequence[torch.Tensor]) -> str:
        """Nothing runs on after a call."""
        return ""

    def deliver(self, output: torch.Tensor) -> int | None:
        """Outputs go back as bytes."""
        return None

    def give_back(self) -> None:
        """The judge shares the memory."""

    def kind_of(self, error: BaseException) -> str:
        """See `Runner`."""
        return "exception"

    def threads(self) -> int:
        """See `Runner`."""
        return max(threading.active_count(), syscalls.thread_count()) - 1
