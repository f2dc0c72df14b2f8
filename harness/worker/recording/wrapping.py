"""Replaces the entry points in a script's test, so that their calls are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import torch

from harness.worker.triton_hooks.launches import KERNELS

from .call_log import CallLog
from .expressions import CannotExpress

_META = "meta"
"""Name of the grid's parameter in its text."""


def wrap(log: CallLog, module: ModuleType, name: str) -> Any:
    """Return the object that replaces the reference's entry point `name` in the test."""
    entry = getattr(module, name)
    if isinstance(entry, KERNELS):
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
    """Return a subclass that replaces a class in the test: it notes how its instances are made, and records calls of instances.

    Calls are recorded only if the class defines `__call__`.
    """

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
        """Return the launcher for a grid, which records its launch as a call and returns what the launch returns."""

        def launch(*args: Any, **named: Any) -> Any:
            arguments = {**dict(zip(self._kernel.arg_names, args, strict=False)), **named}

            def text() -> str:
                return f"{self._name}[{grid_text(grid, self._kernel, arguments)}]"

            names = tuple(self._kernel.arg_names)
            return self._log.call(text, self._kernel[grid], args, named, names=names)

        return launch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel, name)


class ChosenValue(int):
    """A value that an autotuner chooses: the number of one config, and its text. Arithmetic keeps both."""

    text: str

    def __new__(cls, value: int, text: str) -> ChosenValue:
        """Return the number `value` with its text."""
        chosen = super().__new__(cls, value)
        chosen.text = text
        return chosen

    def _refuse(self, *_: Any) -> Any:
        raise CannotExpress("its grid compares values that an autotuner chooses")

    def __neg__(self) -> ChosenValue:
        return ChosenValue(-int(self), f"(-{self.text})")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __bool__ = __hash__ = _refuse


def _operator(name: str, symbol: str) -> None:
    """Give `ChosenValue` an operator from both sides: its result has the text of the whole expression."""
    plain, reflected = f"__{name}__", f"__r{name}__"

    def from_left(self: ChosenValue, operand: Any) -> Any:
        return ChosenValue(getattr(int, plain)(self, operand), f"({self.text} {symbol} {_text(operand)})")

    def from_right(self: ChosenValue, operand: Any) -> Any:
        return ChosenValue(getattr(int, reflected)(self, operand), f"({_text(operand)} {symbol} {self.text})")

    setattr(ChosenValue, plain, from_left)
    setattr(ChosenValue, reflected, from_right)


for _name, _symbol in (("add", "+"), ("sub", "-"), ("mul", "*"), ("floordiv", "//"), ("mod", "%")):
    _operator(_name, _symbol)


class _Meta(dict[str, Any]):
    """The arguments of a launch. A missing name gives the value that the autotuner chooses."""

    def __init__(self, arguments: Mapping[str, Any], chosen: Mapping[str, Any]) -> None:
        super().__init__(arguments)
        self._chosen = chosen

    def __missing__(self, name: str) -> Any:
        if not isinstance(self._chosen.get(name), int):
            raise KeyError(name)
        return ChosenValue(self._chosen[name], f"{_META}[{name!r}]")


def grid_text(grid: Any, kernel: Any, arguments: Mapping[str, Any]) -> str:
    """Return the text of a launch's grid: numbers, or a function of the values that the kernel's autotuner chooses.

    Raises `CannotExpress` if the function cannot be written as arithmetic.
    """
    configs = getattr(kernel, "configs", None)
    if callable(grid):
        grid = grid(_Meta(arguments, configs[0].all_kwargs() if configs else {}))
    sizes = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
    inside = f"{', '.join(map(_text, sizes))}{',' if len(sizes) == 1 else ''}"
    return f"lambda {_META}: ({inside})" if any(isinstance(size, ChosenValue) for size in sizes) else inside


def _text(value: Any) -> str:
    return value.text if isinstance(value, ChosenValue) else str(int(value))
