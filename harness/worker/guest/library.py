"""A library as it is loaded: whether a function of its own, or anything that its modules and classes hold, was replaced since."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter, is_not
from types import FunctionType, ModuleType
from typing import Any

_DRIVER = ".driver"
"""Modules called so fill in parts of themselves when a device is first used."""
_MOVING = frozenset(
    {
        "__abstractmethods__",
        "_abc_impl",
        "__annotations__",
        "__dict__",
        "__weakref__",
        "__doc__",
        "__slotnames__",
        "__warningregistry__",
    }
)
_GROWING = frozenset({"_triton_jit_function_registry"})
"""Where a package keeps what others make by it."""
_WRAPPED = ("__wrapped__", "__func__", "fget", "fn")
_PARTS = tuple(map(attrgetter, ("__code__", "__defaults__", "__kwdefaults__")))
_TEXT = "_src"
"""Of a jit function, which is compiled from it."""


class Library:
    """
    The functions of a package: of all its modules that are loaded but drivers, native ones too, and of all classes that can be reached from there.

    With `whole` all else too that they hold, what dicts and lists among it hold, and names that come later: for a process in which nothing of
    the package changes by itself.
    """

    def __init__(self, package: str, *, whole: bool = False) -> None:
        self._package = package
        self._whole = whole
        owners = list(self._owners())
        self._known = [(one, self._members(one)) for one in owners]
        self._names = [(one, frozenset(vars(one))) for one in owners if whole]
        held = [value for _, members in self._known for value in members.values()]
        self._insides = Insides(held)
        self._texts = [
            (value, vars(value)[_TEXT]) for value in held if _TEXT in getattr(value, "__dict__", ())
        ]
        self._items = [
            (f"{_name(owner)}.{name}", value, _items(value))
            for owner, members in self._known
            for name, value in members.items()
            if isinstance(value, (dict, list, set)) and name not in _GROWING and value is not sys.modules
        ]
        self._modules = [(name, module) for name, module in sys.modules.items() if self._has(name)]

    def replaced(self) -> Iterator[str]:
        """Names that now mean something else or nothing, as `triton.compiler.compiler.compile`."""
        for owner, known in self._known:
            members = vars(owner)
            if not holds(members, known):
                changed = (name for name, value in known.items() if members.get(name) is not value)
                yield from (f"{_name(owner)}.{name}" for name in changed)
        yield from (name for name, module in self._modules if sys.modules.get(name) is not module)
        yield from self._insides.changed()
        for value, text in self._texts:
            if vars(value)[_TEXT] is not text:
                yield f"{value.fn.__module__}.{value.fn.__qualname__}"
        for name, value, items in self._items:
            now = _items(value)
            if len(now) != len(items) or any(map(is_not, items, now)):
                yield name
        for owner, names in self._names:
            for name in vars(owner).keys() - names - _MOVING:
                if not isinstance(vars(owner)[name], ModuleType):
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

    def _members(self, owner: Any) -> dict[str, Any]:
        kinds = (property, staticmethod, classmethod)
        return {
            name: value
            for name, value in list(vars(owner).items())
            if name not in _MOVING
            and (
                callable(value)
                or isinstance(value, kinds)
                or (self._whole and not isinstance(value, ModuleType))
            )
        }


def _name(owner: Any) -> str:
    return owner.__name__ if isinstance(owner, ModuleType) else f"{owner.__module__}.{owner.__qualname__}"


class Insides:
    """What all functions of Python's do that values are, or wrap."""

    def __init__(self, values: Iterable[Any]) -> None:
        found = {}
        for value in {id(value): value for value in values}.values():
            if type(value) is FunctionType and not value.__dict__:
                found[id(value)] = value
            elif (type(value).__dictoffset__ or type(value) is property) and not isinstance(
                value, ModuleType
            ):
                found |= {id(function): function for function in _functions_of(value)}
        self._functions = list(found.values())
        self._parts = [(part, list(map(part, self._functions))) for part in _PARTS]
        named = [(one, one.__kwdefaults__) for one in self._functions if one.__kwdefaults__]
        self._named = [(one, dict(values)) for one, values in named]

    def changed(self) -> Iterator[str]:
        """Names of functions that are the same ones and do something else."""
        for part, before in self._parts:
            if any(map(is_not, map(part, self._functions), before)):
                pairs = zip(self._functions, before, strict=True)
                yield from (_name_of(one) for one, had in pairs if part(one) is not had)
        for one, named in self._named:
            if one.__kwdefaults__ is not None and not is_unchanged(one.__kwdefaults__, named):
                yield _name_of(one)


def is_unchanged(members: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the same names hold the very same values, and there are no others."""
    return members.keys() == before.keys() and holds(members, before)


def holds(members: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Whether the names that there were hold the very same values."""
    return not any(map(is_not, map(members.get, before), before.values()))


def _name_of(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}"


def _functions_of(value: Any) -> Iterator[FunctionType]:
    """Those of Python's that a value is, or wraps, one inside the other."""
    while value is not None:
        if isinstance(value, FunctionType):
            yield value
        holds = getattr(value, "__dict__", {})
        if isinstance(value, (property, staticmethod, classmethod)):
            holds = {name: getattr(value, name, None) for name in _WRAPPED[1:3]}
        value = next((holds[name] for name in _WRAPPED if holds.get(name) is not None), None)


def _items(value: Any) -> list[Any]:
    return [*value, *(value.values() if isinstance(value, dict) else ())]
