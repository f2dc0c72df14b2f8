"""The names of the cockpit's keys, which `[keys]` in a configuration may give other keys."""

from __future__ import annotations

import difflib
import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module

from textual.binding import Binding
from textual.dom import DOMNode

import tui.cockpit
from tui.diagnostics import Complaint


def key_names() -> list[str]:
    """Return all names, sorted. Imports every screen."""
    for module in pkgutil.walk_packages(tui.cockpit.__path__, f"{tui.cockpit.__name__}."):
        import_module(module.name)
    own = [kind for kind in _below(DOMNode) if kind.__module__.startswith(tui.cockpit.__name__)]
    bindings = (binding for kind in own for binding in kind.__dict__.get("BINDINGS", ()))
    return sorted({binding.id for binding in bindings if isinstance(binding, Binding) and binding.id})


def _below(kind: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for derived in kind.__subclasses__():
        yield derived
        yield from _below(derived)


def check_keymap(keymap: Iterable[str]) -> None:
    """Raise `Complaint` for a name that no key has, with the nearest right one."""
    names = key_names()
    for name in keymap:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"names are {', '.join(names)}"
            raise Complaint(f"[keys] {name!r} is no key's name; {hint}")
