"""What a candidate's host code does beside its launches while they are only compiled: operators that compute, reads of data."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from harness.worker.guest import operators
from harness.worker.guest.record import NOT_TOLD, tensors

from . import capture, noted


class Computes(BaseException):
    """The host computes, so that nothing more is to be learned of the call: at `gpu` sizes it may take minutes on a CPU."""


class HostWork(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the first operator that no task allows for free, and whether Python looked at values. One call's worth.

    Where launches are not `noted` but compiled, the call ends there, with `Computes`.
    """

    def __init__(
        self, module: str, allowed: tuple[str, ...], noted: Sequence[capture.Launch] | None = None
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._module = module
        self._allowed = allowed
        self.operator = ""
        self.line: int | None = None
        self.reads = False
        """What is launched may depend on values then, and these are not a case's."""
        self._noted = noted
        self.moves: list[str] = []
        """Operators that fill and copy, where launches are `noted`."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """The operator's own result."""
        name = func._schema.name.rpartition("::")[2]
        if name == "_local_scalar_dense":
            self.reads = True
        elif not func.is_view and not self.operator and not operators.is_allowed(name, self._allowed):
            self.operator, self.line = name, self._own_line()
            if self._noted is None:
                raise Computes
        result = func(*args, **(kwargs or {}))
        if self._noted is not None and not func.is_view and name not in operators.LOOKING:
            self._move(name, args, kwargs or {}, result, len(self._noted))
        return result

    def _move(
        self, name: str, args: tuple[Any, ...], named: Mapping[str, Any], result: Any, launches: int
    ) -> None:
        given = [capture.value(one) for one in args]
        kept = {
            key: capture.value(one) for key, one in named.items() if key not in NOT_TOLD and one is not None
        }
        given += [capture.made(one) for one in tensors(result)]
        if name not in operators.ALLOCATING:  # the others' memory may be named by its address
            self.moves.append(noted.moved(name, launches, given, kept, capture.noting.memories))

    def _own_line(self) -> int | None:
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self._module:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]
        return None
