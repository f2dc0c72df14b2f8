"""Finds what a candidate's host code does besides launches: operators that compute, copies, and reads of tensors."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from harness.wire import limits
from harness.wire.calls import operators
from harness.worker.candidate.part_copies import copies_into_part
from harness.worker.kit.candidate_trace import calling_line


class Computes(BaseException):
    """Ends a call, because its host code does the kernels' work: at `gpu` sizes that may take minutes on a CPU."""


class HostWork(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raises `Computes` at the first operator that may not run outside kernels, and notes whether Python read values.

    The judge's limit for copies into parts of tensors holds here too, as a GPU would reach it.
    """

    def __init__(self, module: str, allowed: tuple[str, ...]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._module = module
        self._allowed = allowed
        self.operator = ""
        self.line: int | None = None
        self.copies = 0
        """Number of copies that write a part of a tensor."""
        self.operator_cpu_s = 0.0
        self.reads = False
        """Python read values, which are not the case's real values here; the launches may depend on them."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func._schema.name.rpartition("::")[2]
        if name == "_local_scalar_dense":
            self.reads = True
        elif not func.is_view and not self.operator:
            self.copies += copies_into_part(name, args)
            if self.copies > limits.COPIES or not operators.is_allowed(name, self._allowed):
                self.operator, self.line = name, calling_line(self._module)
                raise Computes
        began = time.process_time()
        try:
            return func(*args, **(kwargs or {}))
        finally:
            self.operator_cpu_s += time.process_time() - began
