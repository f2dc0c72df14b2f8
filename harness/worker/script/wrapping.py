"""Replaces the entry points in a script's test, so that their calls are recorded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from types import ModuleType
from typing import Any

import torch
from triton import KernelInterface

from .call_log import CallLog
from .grids import grid_text


def wrap(log: CallLog, module: ModuleType, name: str) -> Any:
    """Return the object that replaces the reference's entry point `name` in the test."""
    entry = getattr(module, name)
    if isinstance(entry, KernelInterface):
        return _Launches(log, name, entry)
    if not isinstance(entry, type):
        return _recorded(log, name, entry)
    if issubclass(entry, Enum):
        return entry
    if issubclass(entry, torch.autograd.Function):
        return _Methods(log, name, entry)
    return _wrap_tuple(log, name, entry) if issubclass(entry, tuple) else _wrap_class(log, name, entry)


def _recorded(log: CallLog, text: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def recorded(*args: Any, **named: Any) -> Any:
        return log.call(text, function, args, named)

    return recorded


def _wrap_tuple(log: CallLog, name: str, kind: type) -> type:
    """Return a factory of named tuples: the instances are of the reference's own class."""

    def new(_: type, *args: Any, **named: Any) -> Any:
        instance = kind.__new__(kind, *args, **named)
        log.note_object(instance, name, kind, args, named)
        return instance

    return type(name, (), {"__new__": new})


def _wrap_class(log: CallLog, name: str, kind: Any) -> type:
    """Return a subclass that notes how its instances are made, and records calls of instances."""

    def init(instance: Any, *args: Any, **named: Any) -> None:
        with log.building():
            kind.__init__(instance, *args, **named)
        log.note_object(instance, name, kind, args, named)

    def call(instance: Any, *args: Any, **named: Any) -> Any:
        return log.call(instance, kind.__call__.__get__(instance), args, named)

    members: dict[str, Any] = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    members["__init__"] = init
    if any("__call__" in vars(base) for base in kind.__mro__):
        members["__call__"] = call
    return type(name, (kind,), members)


class _Methods:
    """Replaces a `torch.autograd.Function` in the test: records calls of `apply` and of its other static methods."""

    def __init__(self, log: CallLog, name: str, kind: type) -> None:
        self._log = log
        self._name = name
        self._kind = kind

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._kind, name)
        return _recorded(self._log, f"{self._name}.{name}", member) if callable(member) else member


class _Launches:
    """Replaces a kernel in the test: records `kernel[grid](...)` as a call."""

    def __init__(self, log: CallLog, name: str, kernel: Any) -> None:
        self._log = log
        self._name = name
        self._kernel = kernel

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        def launch(*args: Any, **named: Any) -> Any:
            arguments = {**dict(zip(self._kernel.arg_names, args, strict=False)), **named}

            def text() -> str:
                return f"{self._name}[{grid_text(grid, self._kernel, arguments)}]"

            names = tuple(self._kernel.arg_names)
            return self._log.call(text, self._kernel[grid], args, named, names=names)

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)
