"""The base of modes that see each operator of torch, and which operators copy into parts of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.wire.calls import operators

_COPYING = operators.SETTING | {"copy_"}


class OperatorMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets `_run` run each operator; it gets the operator's name without its namespace."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes a second

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        return self._run(func, func._schema.name.rpartition("::")[2], args, dict(kwargs or {}))

    def _run(self, func: Any, name: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run the operator and return its result."""
        raise NotImplementedError


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The dense tensors in the arguments or the result of an operator."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            yield value
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors(part)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def copies_into_part(name: str, args: Sequence[Any]) -> bool:
    """Return whether the operator `name` copies one tensor into a part of another tensor."""
    if name not in _COPYING:
        return False
    tensors = [value for value in args if isinstance(value, torch.Tensor) and value.layout is torch.strided]
    return len(tensors) > 1 and tensors[0].nbytes < tensors[0].untyped_storage().nbytes()
