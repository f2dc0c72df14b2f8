"""Watches the candidate's host code during one call: tensor operators, host reads, and whether outputs come from kernels."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from harness.wire.calls import operators
from harness.wire.messages.guest import Operator
from harness.worker.interpreter.traffic import Observation
from harness.worker.kit.candidate_trace import calling_line
from harness.worker.kit.operator_mode import OperatorMode, copies_into_part, tensors
from harness.worker.kit.poison import Poison, poison

from .host_copies import HostCopies

_HOST_READERS = ("tolist", "numpy", "__array__", "__dlpack__")
_HOST_MAKERS = ("tensor", "as_tensor", "asarray", "from_numpy", "frombuffer")

_reading: list[OperatorWatch] = []
"""The watch of the running call, for the patched readers; empty between calls."""


class OperatorWatch(OperatorMode):  # type: ignore[no-untyped-call]
    """Counts the operators of one call, poisons fresh memory, and follows kernel outputs through copies."""

    def __init__(self, observation: Observation, module: str, kind: Poison = Poison.NAN) -> None:
        super().__init__()
        self._observation = observation
        self._module = module
        self._poison = kind
        self._counts: Counter[tuple[str, int | None]] = Counter()
        self._derived: dict[int, torch.UntypedStorage] = {}
        """Storages with copies of what kernels stored, by address."""
        self.host_copies = (
            HostCopies(observation, self.from_kernel) if observation.known is not None else None
        )
        self.host_elements = 0
        self.copies = 0
        """Number of copies and fills that write a part of a tensor."""
        self.copying_line: int | None = None
        """The candidate's line of the last of these."""

    def __enter__(self) -> OperatorWatch:
        _reading.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *why: Any) -> None:
        super().__exit__(*why)  # type: ignore[no-untyped-call]
        _reading.remove(self)

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run an operator of the host code and note what it did: memory that it allocated, wrote, copied or read, and its line.

        Fresh memory is filled with poison. Operators that only make views, or look at a tensor, are not counted.
        """
        if name in operators.WITHOUT_MEMORY:
            return func(*args, **named)
        sources = list(tensors((args, named)))
        derived = any(self.from_kernel(source) for source in sources) and name not in operators.FILLING
        if not func.is_view and name not in operators.LOOKING:
            for source in sources:
                self._observation.check_read(source, f"line {calling_line(self._module)}: `{name}`")
        result = func(*args, **named)
        if name in operators.ALLOCATING:
            for tensor in tensors(result):
                poison(tensor, self._poison)
                self._observation.fresh(tensor)
        elif name == "lift_fresh":  # of `torch.tensor` and its kind: new memory with numbers of Python
            self._observation.filled(result)
        elif not func.is_view:
            if name not in operators.LOOKING:
                for tensor in tensors((result, args, named) if func._schema.is_mutable else result):
                    self._observation.filled(tensor)
            if copies_into_part(name, args):
                self.copies += 1
                self.copying_line = calling_line(self._module)
            if name not in operators.FREE:
                self._counts[name, calling_line(self._module)] += 1
            if name == "_local_scalar_dense":
                self.host_elements += 1
            if derived:
                for tensor in tensors(result):
                    storage = tensor.untyped_storage()
                    self._derived[storage.data_ptr()] = storage
        is_look = func.is_view or name in operators.LOOKING
        if self.host_copies is not None and (name == "lift_fresh" or not is_look):
            self.host_copies.note(name, args, result)
        return result

    def from_kernel(self, tensor: torch.Tensor) -> bool:
        """Whether a kernel stored into this tensor, or into a tensor that it was copied from."""
        return tensor.untyped_storage().data_ptr() in self._derived or self._observation.wrote(tensor)

    def operators(self) -> tuple[Operator, ...]:
        """Operators that a task may forbid, with the line of each call."""
        return tuple(
            Operator(name=name, line=line, count=count) for (name, line), count in self._counts.items()
        )


def count_host_elements() -> None:
    """Count elements that leave or enter torch through Python. Call once, before the candidate's import."""
    for name in _HOST_READERS:
        setattr(torch.Tensor, name, _counted(getattr(torch.Tensor, name)))
    for name in _HOST_MAKERS:
        setattr(torch, name, _counted_maker(getattr(torch, name)))


def _counted(reader: Callable[..., Any]) -> Callable[..., Any]:
    """Return the reader of a tensor, such as `tolist`, which also counts the elements that it reads in each open watch."""

    def read(self: torch.Tensor, *args: Any, **named: Any) -> Any:
        for watch in _reading:
            watch.host_elements += self.numel()
        return reader(self, *args, **named)

    return read


def _counted_maker(maker: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return the maker of a tensor, such as `torch.tensor`, which also counts elements that it makes of Python's numbers."""

    @functools.wraps(maker)
    def make(*args: Any, **named: Any) -> torch.Tensor:
        tensor = maker(*args, **named)
        if not isinstance(next(iter([*args, *named.values()]), None), torch.Tensor):
            for watch in _reading:
                watch.host_elements += tensor.numel()
        return tensor

    return make
