"""Functions of a library by the place where they stand: whether one was replaced since."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_DRIVER = ".driver"
"""Modules called so fill in parts of themselves when a device is first used."""


class Functions:
    """Those of a package: of all its modules that are loaded but drivers, native ones too, and of all classes that can be reached from there."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._known = [(one, _functions(one)) for one in self._owners()]

    def replaced(self) -> Iterator[str]:
        """Names that now mean something else or nothing, as `triton.compiler.compiler.compile`; what came since is no difference."""
        for owner, known in self._known:
            members = vars(owner)
            for name, value in known.items():
                if members.get(name) is not value:
                    yield f"{_name(owner)}.{name}"

    def accept(self, owner: Any, name: str) -> None:
        """What is called so by now is no difference."""
        for one, known in self._known:
            if one is owner:
                known[name] = vars(owner)[name]

    def _owners(self) -> Iterator[Any]:
        waiting: list[Any] = [module for name, module in sys.modules.items() if self._has(name)]
        seen = set()
        while waiting:
            owner = waiting.pop()
            if id(owner) in seen:
                continue
            seen.add(id(owner))
            yield owner
            waiting += [
                value
                for value in list(vars(owner).values())
                if isinstance(value, (ModuleType, type)) and self._has(_name(value))
            ]

    def _has(self, name: str) -> bool:
        return (name == self._package or name.startswith(f"{self._package}.")) and _DRIVER not in name


def _name(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


def _functions(owner: Any) -> dict[str, Callable[..., Any] | property]:
    kinds = (property, staticmethod, classmethod)
    return {name: value for name, value in vars(owner).items() if callable(value) or isinstance(value, kinds)}
