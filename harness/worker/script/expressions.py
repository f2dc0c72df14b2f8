"""Turns the arguments of a recorded call into Python text and tensors, and finds the tensors in its result."""

from __future__ import annotations

import keyword
import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from harness.wire.script_messages import RESULT, TensorData
from harness.worker.kit import arena
from suites.dtypes import ITEM_BYTES

MOST_ITEMS = 256
"""Items of one list, tuple or dictionary in an argument or result."""
_RESERVED = frozenset({"call", RESULT, "torch"})


class CannotExpress(Exception):
    """A value that Python text cannot repeat."""


class Expressions:
    """Text of the arguments of one call; collects its tensors by name."""

    def __init__(self, objects: Mapping[int, tuple[object, str, dict[str, torch.Tensor]]], taken: set[str]) -> None:
        """`objects`: instances of the script's own classes by `id`, with text and tensors. `taken`: names in use."""
        self._objects = objects
        self._taken = taken
        self.tensors: dict[str, torch.Tensor] = {}

    def text_of(self, value: Any, hint: str) -> str:
        """Return the text of a value. `hint` suggests a name for a tensor. Raises `CannotExpress`."""
        if isinstance(value, torch.Tensor):
            return self._name_of(value, hint)
        if value is None or isinstance(value, (bool, int, str)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value}")'
        if isinstance(value, torch.dtype):
            return str(value)
        if isinstance(value, torch.device):
            return f'torch.device("{value}")'
        if isinstance(value, torch.Size):
            return repr(tuple(value))
        if id(value) in self._objects:
            return self._object(value, hint)
        if type(value) in (list, tuple):
            parts = [self.text_of(part, f"{hint}_{place}") for place, part in enumerate(value[:MOST_ITEMS])]
            if len(value) > MOST_ITEMS:
                raise CannotExpress(f"argument `{hint}` has {len(value)} items")
            if type(value) is list:
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        if type(value) is dict:
            return "{%s}" % ", ".join(
                f"{self.text_of(key, hint)}: {self.text_of(part, f'{hint}_{key}')}" for key, part in value.items()
            )
        raise CannotExpress(f"argument `{hint}` is a {type(value).__module__}.{type(value).__qualname__}")

    def _object(self, value: object, hint: str) -> str:
        _, text, tensors = self._objects[id(value)]
        for name, tensor in tensors.items():
            own = self._name_of(tensor, f"{hint}_{name}")
            text = text.replace(f"\0{name}\0", own)
        return text

    def _name_of(self, tensor: torch.Tensor, hint: str) -> str:
        problem = tensor_problem(tensor)
        if problem:
            raise CannotExpress(f"argument `{hint}` {problem}")
        for name, other in self.tensors.items():
            if other is tensor:
                return name
        name = plain_name(hint)
        while name in self._taken or name in self.tensors:
            name += "_"
        self.tensors[name] = tensor
        return name


def plain_name(hint: str) -> str:
    """Return a Python name close to `hint`."""
    name = "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in hint) or "x"
    name = name if name.isidentifier() else f"x_{name}"
    return f"{name}_" if keyword.iskeyword(name) or name in _RESERVED else name


def tensor_problem(tensor: torch.Tensor) -> str:
    """Return why a tensor cannot be recorded; empty if it can."""
    if not isinstance(tensor, (torch.Tensor, torch.nn.Parameter)) or tensor.layout is not torch.strided:
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


def data_of(tensor: torch.Tensor) -> TensorData:
    """Return the tensor as data."""
    with torch.no_grad():
        plain = tensor.detach()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        return TensorData(
            dtype=arena.dtype_name(plain.dtype),
            shape=tuple(plain.shape),
            strides=tuple(plain.stride()),
            data=arena.storage_bytes(plain) if plain.numel() else b"",
        )
