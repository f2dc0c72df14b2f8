"""Watches the host code of a recorded call: which tensor operators compute, and fills memory that it allocates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from harness.wire import operators
from harness.worker.kit.poison import Poison, poison

from .expressions import tensors_of


class HostOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operators while the block runs."""

    def __init__(self, observation: Any, kind: Poison) -> None:
        """`observation` is the interpreter's; `None` on a GPU."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._observation = observation
        self._poison = kind
        self.names: set[str] = set()
        """Operators that compute outside of kernels."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operator and note it."""
        name = func._schema.name.rpartition("::")[2]
        result = func(*args, **(kwargs or {}))
        if name in operators.ALLOCATING:
            for _, tensor in tensors_of(result):
                poison(tensor, self._poison)
        elif not func.is_view and name not in operators.FREE and not self._is_launching():
            self.names.add(name)
        return result

    def _is_launching(self) -> bool:
        """True if the operator is the interpreter's own."""
        return self._observation is not None and self._observation.launching
