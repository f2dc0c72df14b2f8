"""Watches the host code of a recorded call: which tensor operators compute, and fills memory that it allocates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.wire import operators
from harness.worker.kit.poison import Poison, poison

from .expressions import tensors_of


class HostOperators(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operators while the block runs."""

    def __init__(self, observation: Any, kind: Poison) -> None:
        """`observation`: the interpreter's, or on a GPU a `LaunchCount`; `None` for a reference without kernels."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._observation = observation
        self._poison = kind
        self._worked: dict[int, torch.UntypedStorage] = {}
        """Storages that hold results of operators, or copies of what kernels wrote, by address."""
        self._moved: dict[int, tuple[torch.UntypedStorage, str]] = {}
        """Storages that hold copies of inputs, by address, and the operator that made them."""
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
        if self._is_launching() or func.is_view:
            return result
        if name in operators.ALLOCATING:
            for _, tensor in tensors_of(result):
                poison(tensor, self._poison)
            return result
        computes = name not in operators.FREE
        if computes:
            self.names.add(name)
        copies = name in operators.MOVING and any(
            self.has_work(source) for _, source in tensors_of((args, kwargs))
        )
        if name in operators.MOVING and not copies:
            for _, tensor in tensors_of(result):
                storage = tensor.untyped_storage()
                self._moved[storage.data_ptr()] = storage, name
        if computes or copies:
            for _, tensor in tensors_of(result):
                storage = tensor.untyped_storage()
                self._worked[storage.data_ptr()] = storage
        return result

    def note_output(self, tensor: torch.Tensor) -> None:
        """Count the copy of an input as an operator that the task needs, if this output was made from one."""
        moved = self._moved.get(tensor.untyped_storage().data_ptr())
        if moved is not None:
            self.names.add(moved[1])

    @property
    def launches_nothing(self) -> bool:
        """True if a reference with kernels launched none."""
        return self._observation is not None and not self._observation.launches

    def has_work(self, tensor: torch.Tensor) -> bool:
        """Return whether a kernel or an operator computed any of the tensor. Always true without an observation."""
        if self._observation is None or tensor.untyped_storage().data_ptr() in self._worked:
            return True
        return bool(self._observation.wrote(tensor))

    def _is_launching(self) -> bool:
        """True if the operator is the interpreter's own."""
        return self._observation is not None and self._observation.launching
