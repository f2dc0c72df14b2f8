"""Turns the arguments of a recorded call into Python text and tensors."""

from __future__ import annotations

import inspect
import keyword
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import torch
import triton.language as tl

from harness.wire.calls.tensors import TensorSpec
from harness.wire.messages.script import CALL, RESERVED, RESULT
from harness.worker.kit import arena
from suites.dtypes import ITEM_BYTES

MOST_ITEMS = 256
"""Items of one list, tuple or dictionary in an argument or result."""


class CannotExpress(Exception):
    """A value that Python text cannot repeat."""


class Made(NamedTuple):
    """An instance of one of the script's own classes, and the call that made it."""

    instance: object
    """Kept alive, so that no later object gets its `id`."""
    name: str
    kind: Any
    args: Sequence[Any]
    named: Mapping[str, Any]


class Expressions:
    """Text of the arguments of one call; collects its tensors by name."""

    def __init__(self, objects: Mapping[int, Made], taken: frozenset[str]) -> None:
        """`objects` by `id`. `taken`: names in use."""
        self._objects = objects
        self._taken = taken
        self.tensors: dict[str, torch.Tensor] = {}

    def text_of(self, value: Any, hint: str) -> str:
        """Return the text of a value. `hint` suggests a name for a tensor. Raises `CannotExpress`."""
        if isinstance(value, torch.Tensor):
            return self._name_of(value, hint)
        if isinstance(value, Enum) and isinstance(value, (int, str)):
            value = value.value
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, torch.dtype):
            return str(value)
        if isinstance(value, tl.dtype):
            return _triton_dtype(value, hint)
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        if id(value) in self._objects:
            made = self._objects[id(value)]
            arguments = self.arguments(parameter_names(made.kind), made.args, made.named, f"{hint}_")
            return f"{made.name}({arguments})"
        if isinstance(value, torch.Size):
            return repr(tuple(value))
        if type(value) in (list, tuple, dict):
            return self._items(value, hint)
        raise CannotExpress(f"argument `{hint}` is a {type(value).__module__}.{type(value).__qualname__}")

    def arguments(
        self, names: Sequence[str], args: Sequence[Any], named: Mapping[str, Any], prefix: str = ""
    ) -> str:
        """Return the text of all arguments of a call. `names` of parameters, after `prefix`, suggest names for tensors."""
        hints = [*names[: len(args)], *(f"x_{place}" for place in range(len(names), len(args)))]
        parts = [self.text_of(value, prefix + hint) for value, hint in zip(args, hints, strict=True)]
        parts += [f"{name}={self.text_of(value, prefix + name)}" for name, value in named.items()]
        return ", ".join(parts)

    def _items(self, value: Any, hint: str) -> str:
        """Return the text of a list, tuple or dictionary.

        Raises `CannotExpress` for too many items and for items without a text.
        """
        if len(value) > MOST_ITEMS:
            raise CannotExpress(f"argument `{hint}` has {len(value)} items")
        if isinstance(value, dict):
            pairs = [
                f"{self.text_of(key, hint)}: {self.text_of(part, f'{hint}_{key}')}"
                for key, part in value.items()
            ]
            return f"{{{', '.join(pairs)}}}"
        parts = [self.text_of(part, f"{hint}_{place}") for place, part in enumerate(value)]
        if isinstance(value, list):
            return f"[{', '.join(parts)}]"
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def _name_of(self, tensor: torch.Tensor, hint: str) -> str:
        """Return the name of a tensor in the text of the call; one tensor has one name, however often it occurs.

        A new name is `hint` as an identifier, with underscores until no other name is equal. Raises `CannotExpress` for a
        tensor that cannot be sent.
        """
        problem = tensor_problem(tensor)
        if problem:
            raise CannotExpress(f"argument `{hint}` {problem}")
        for name, known_tensor in self.tensors.items():
            if known_tensor is tensor:
                return name
        name = plain_name(hint)
        while name in self._taken or name in self.tensors:
            name += "_"
        self.tensors[name] = tensor
        return name


def parameter_names(function: Any) -> list[str]:
    """Return the parameters that can be given by position; empty if Python cannot list them."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        item.name for item in parameters if item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
    ]


def _triton_dtype(value: tl.dtype, hint: str) -> str:
    for name, member in vars(tl).items():
        if isinstance(member, tl.dtype) and member == value:
            return f"triton.language.{name}"
    raise CannotExpress(f"argument `{hint}` is the Triton dtype {value}")


def plain_name(hint: str) -> str:
    """Return a Python name close to `hint`."""
    name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in hint) or "x"
    name = name if name.isidentifier() else f"x_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name == CALL or name in RESERVED else name


def tensor_problem(tensor: torch.Tensor) -> str:
    """Return why a tensor cannot be recorded; empty if it can."""
    if tensor.layout is not torch.strided:
        return f"has the layout {tensor.layout}"
    if arena.dtype_name(tensor.dtype) not in ITEM_BYTES:
        return f"has the dtype {arena.dtype_name(tensor.dtype)}"
    return ""


def parts_of(value: Any, path: str = RESULT) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a result with the expressions that reach them."""
    if isinstance(value, (tuple, list)):
        for place, part in enumerate(value[:MOST_ITEMS]):
            yield from parts_of(part, f"{path}[{place}]")
    elif isinstance(value, dict):
        for key, part in list(value.items())[:MOST_ITEMS]:
            yield from parts_of(part, f"{path}[{key!r}]")
    else:
        yield path, value


def tensors_of(value: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a result with the expressions that reach them."""
    return ((path, part) for path, part in parts_of(value) if isinstance(part, torch.Tensor))


def data_of(tensor: torch.Tensor) -> TensorSpec:
    """Return the tensor as data."""
    with torch.no_grad():
        plain = tensor.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        return arena.data_of(plain)
