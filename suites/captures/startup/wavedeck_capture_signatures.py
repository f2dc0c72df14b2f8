"""
The signature of a recorded call: its arguments without their values, first as a key, then as plain data.

Python 3.9 and newer; standard library only. The folder is on PYTHONPATH of the program, outside of our packages.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

MOST_ITEMS = 64
"""Longer lists and dicts are described by their type alone."""
MOST_CHARACTERS = 64
"""Longer texts are described by their type alone."""
MOST_DEPTH = 2
"""Deeper lists and dicts are described by their type alone: the items of many levels would take forever."""
MODULE, NAME = vars(type)["__module__"], vars(type)["__qualname__"]
"""They read the names of a class without its metaclass."""
TRACED = ("FakeTensor", "FunctionalTensor")
"""Tensors of a compiler, which hold no values."""


class TracedCall(Exception):
    """A compiler calls the function, with tensors that hold no values or have symbols as sizes."""


def key_of(value: Any, path: str, tensors: list[tuple[str, Any]], torch: Any, depth: int = 0) -> Hashable:
    """
    Return a hashable description of a value, and add its tensors to `tensors`. `described` makes plain data of it.

    No method of the program is called: it could print, fail or wait.
    """
    kind = type(value)
    if torch is not None and issubclass(kind, torch.Tensor):
        if kind.__name__ in TRACED:
            raise TracedCall
        tensors.append((path, value))
        device = "cuda" if value.is_cuda else value.device.type
        return ("tensor", value.shape, value.stride(), value.dtype, device, value.requires_grad)
    if value is None or kind is bool:
        return ("scalar", kind, value)
    if kind is int and -(2**63) <= value < 2**63:
        return ("scalar", kind, value)
    if kind is float and value - value == 0:  # finite
        return ("scalar", kind, value)
    if kind is str and len(value) <= MOST_CHARACTERS:
        return ("scalar", kind, value)
    if torch is not None and kind in (torch.dtype, torch.device):
        return ("object", str(value))
    if depth < MOST_DEPTH:
        for base, brackets in ((list, "[]"), (tuple, "()")):
            if issubclass(kind, base) and base.__len__(value) <= MOST_ITEMS:
                paths = (f"{path}{brackets[0]}{place}{brackets[1]}" for place in range(base.__len__(value)))
                items = zip(base.__iter__(value), paths)
                return (
                    base.__name__,
                    *(key_of(item, name, tensors, torch, depth + 1) for item, name in items),
                )
        if kind is dict and len(value) <= MOST_ITEMS and all(type(name) is str for name in value):
            named = value.items()
            return (
                "dict",
                *((name, key_of(item, f"{path}.{name}", tensors, torch, depth + 1)) for name, item in named),
            )
    return ("object", f"float {value}" if kind is float else f"{MODULE.__get__(kind)}.{NAME.__get__(kind)}")


def described(key: Any) -> dict[str, Any]:
    """Return the description of a signature as plain data."""
    arguments, same, shared = key
    return {
        "arguments": {name: described_value(value) for name, value in arguments},
        "same": same,
        "shared": shared,
    }


def described_value(key: Any) -> dict[str, Any]:
    """Return a value's description, from its key, as plain data.

    Raises `TracedCall` if a compiler traces the call, with sizes that are no numbers.
    """
    kind, *parts = key
    if kind == "tensor":
        shape, strides, dtype, device, requires_grad = parts
        if not all(type(size) is int for size in (*shape, *strides)):
            raise TracedCall
        return {
            "kind": kind,
            "shape": shape,
            "strides": strides,
            "dtype": str(dtype).rpartition(".")[2],
            "device": device,
            "requires_grad": requires_grad,
        }
    if kind == "scalar":
        return {"kind": kind, "value": parts[1]}
    if kind in ("list", "tuple"):
        items = [described_value(item) for item in parts]
        return {"kind": "list", "items": items, "is_tuple": kind == "tuple"}
    if kind == "dict":
        return {"kind": kind, "items": {name: described_value(item) for name, item in parts}}
    return {"kind": kind, "type": parts[0]}


def aliases(tensors: list[tuple[str, Any]]) -> tuple[Hashable, Hashable]:
    """Return the paths that are one tensor, and the paths of different tensors in one storage."""
    if len(tensors) < 2:
        return (), ()
    storages = [tensor.untyped_storage().data_ptr() for _, tensor in tensors]
    if len(set(storages)) == len(storages):
        return (), ()
    firsts: dict[int, tuple[str, int]] = {}
    for (path, tensor), storage in zip(tensors, storages):
        # An empty storage has the address 0, and shares nothing.
        firsts.setdefault(id(tensor), (path, storage or -id(tensor)))
    same = groups((id(tensor), path) for path, tensor in tensors)
    return same, groups((storage, path) for path, storage in firsts.values())


def groups(pairs: Iterable[tuple[int, str]]) -> tuple[tuple[str, ...], ...]:
    """Return the paths that have the same key, in groups of at least two."""
    paths: dict[int, list[str]] = {}
    for key, path in pairs:
        paths.setdefault(key, []).append(path)
    return tuple(tuple(group) for group in paths.values() if len(group) > 1)
