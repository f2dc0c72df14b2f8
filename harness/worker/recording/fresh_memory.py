"""Poisons the memory that a script allocates between the calls of its entry points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from harness.wire import operators
from harness.worker.kit.poison import Poison, poison

from .call_log import CallLog
from .expressions import tensors_of


class FreshMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fills fresh floating-point tensors, because an output buffer may hold the right results of an earlier run.

    Integers keep their values: a script may use them as indices.
    """

    def __init__(self, log: CallLog, kind: Poison) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._log = log
        self._kind = kind

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator; outside of calls, poison what it allocates."""
        result = func(*args, **(kwargs or {}))
        name = func._schema.name.rpartition("::")[2]
        if name in operators.ALLOCATING and not self._log.is_recording:
            for _, tensor in tensors_of(result):
                if tensor.is_floating_point():
                    poison(tensor, self._kind)
        return result
