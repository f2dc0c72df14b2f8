"""
Proxies of functions, and loaders that report executed modules, so that a program sees neither.

Python 3.9 and newer; standard library only.
"""

from __future__ import annotations

import copyreg
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import FunctionType, MethodType, ModuleType
from typing import Any

LEVELS = 1 if sys.version_info >= (3, 12) else 2
"""Levels of the recursion limit that the call of a proxy takes."""
OF_A_CLASS = {"__class__", "__class_getitem__", "__del__", "__getattr__", "__getattribute__", "__init__", "__init_subclass__", "__new__", "__subclasshook__"}  # fmt: skip
"""Special names that a proxy does not take from the class of its object."""


def make_proxy(
    target: Callable[..., Any],
    begin: Callable[[tuple[Any, ...], dict[str, Any]], Any],
    end: Callable[[Any, Any], None],
    traced: Callable[[], None],
) -> Any:
    """
    Return an object that a program cannot distinguish from `target`, except by `type`, `is` and the frame of a call.

    A call is `begin(args, kwargs)`, the call of `target`, and `end` with the results of both, unless the call fails.
    torch.compile traces `target`, as without the proxy; then `traced` is called.
    """
    kind = type(target)

    def forwarding(name: str) -> Callable[..., Any]:
        """Return a special method that calls the target's, hidden from tracebacks."""

        def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
            with HIDDEN:
                result = getattr(kind, name)(target, *args, **kwargs)
            return self if result is target else result

        return method

    members = {name: forwarding(name) for name in dir(kind) if name[:2] == "__" and name not in OF_A_CLASS and callable(getattr(kind, name, None))}  # fmt: skip

    def call(_self: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call the target between `begin` and `end`; after an exception there is no `end`."""
        begun = begin(args, kwargs)
        with HIDDEN:
            result = target(*args, **kwargs)
        end(begun, result)
        return result

    def bind(self: Any, /, instance: Any, owner: Any = None) -> Any:
        bound = kind.__get__(target, instance, owner)  # type: ignore[attr-defined]
        if type(bound) is MethodType and bound.__func__ is target:
            return MethodType(self, bound.__self__)
        return self if bound is target else bound

    def reduce(_self: Any, /, protocol: Any) -> Any:
        if kind is FunctionType:
            return target.__qualname__
        reducer: Any = copyreg.dispatch_table.get(kind)
        return reducer(target) if reducer else target.__reduce_ex__(protocol)

    def read(self: Any, /, name: str) -> Any:
        """Read an attribute of the target. `traced` is called if torch.compile reads the code."""
        if name in members:
            return object.__getattribute__(self, name)
        is_code = name in ("__code__", "__wrapped__")
        if is_code and sys._getframe(1).f_globals.get("__name__", "").startswith("torch._dynamo"):
            traced()
        with HIDDEN:
            value = getattr(target, name)
        return self if value is target else value

    members.update(__call__=call, __reduce_ex__=reduce)
    if hasattr(kind, "__get__"):
        members["__get__"] = bind
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__getattribute__": read}
    if kind.__name__ == "_lru_cache_wrapper":  # torch.compile reads it from the class
        names["__wrapped__"] = target.__wrapped__  # type: ignore[attr-defined]
    return type(kind.__name__, (), {**members, **names})()


class Hidden(threading.local):
    """Hides the frames of its `with` statements: from tracebacks, and from the limit of recursion."""

    depth = 0
    """Frames of this thread."""
    added = 0
    """Levels that this thread added to the recursion limit."""

    def __enter__(self) -> None:
        """Count the frame."""
        if self.depth:
            self._set_limit(self.depth)
        self.depth += 1

    def __exit__(self, _kind: Any, error: Any, trace: Any) -> None:
        """Take the frame from the traceback. Python adds it again before 3.11."""
        self.depth -= 1
        if error is not None:
            BaseException.with_traceback(error, trace.tb_next)
        if self.added:
            self._set_limit(max(self.depth - 1, 0))

    def _set_limit(self, calls: int) -> None:
        """Raise the limit of recursion by what the proxies of `calls` open calls add, or lower it again."""
        missing = LEVELS * calls - self.added
        try:
            sys.setrecursionlimit(sys.getrecursionlimit() + missing)
        except RecursionError:  # too deep for a lower limit; the end of the next call sets it
            return
        self.added += missing


HIDDEN = Hidden()


class Finder:
    """Finds the wanted modules as the other finders do, and calls `executed` with each after its execution."""

    def __init__(self, wants: Callable[[str], bool], executed: Callable[[ModuleType], None]) -> None:
        self.wants = wants
        self.executed = executed
        self.searched: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return a wanted module's spec with a loader that calls `executed`; `None` for other modules."""
        asker = getattr(sys._getframe(1).f_back, "f_globals", {}).get("__name__")
        # `importlib.util` shows the spec to the program, as for `python -m`.
        if not self.wants(name) or name in self.searched or asker == "importlib.util":
            return None
        self.searched.add(name)  # another hook may ask all finders in turn
        try:
            finders = [getattr(finder, "find_spec", None) for finder in sys.meta_path if finder is not self]
            specs = (find(name, path, target) for find in finders if find is not None)
            spec = next((spec for spec in specs if spec is not None), None)
        finally:
            self.searched.discard(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = Loader(spec.loader, self.executed)
        return spec


class Loader:
    """Loads a module as its own loader does, and calls `executed` with it after its execution."""

    def __init__(self, loader: Any, executed: Callable[[ModuleType], None]) -> None:
        self.loader = loader
        self.executed = executed

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the module's own loader."""
        return getattr(self.loader, name)

    def exec_module(self, module: Any) -> None:
        """Execute the module; it then has its own loader."""
        module.__spec__.loader = module.__loader__ = self.loader
        with HIDDEN:
            self.loader.exec_module(module)
        self.executed(module)
