"""The last line: keys that do something here and now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from tui.cockpit.draw.lines import Line, Span, cells
from tui.cockpit.widgets.bar import Bar

ALWAYS = ("app.help", "screen.back", "app.quit")
"""Room is kept for these: help, and the ways out."""


class KeyHint(NamedTuple):
    """A key and what it does."""

    name: str
    """The binding's."""
    key: str
    words: str
    action: str


def key_line(hints: Sequence[KeyHint], width: int) -> Line:
    """As many hints as fit whole; what is left out is behind `?`."""
    kept: set[str] = set()
    used = 0
    for hint in sorted(hints, key=lambda each: each.name not in ALWAYS):
        room = cells(_item(hint))
        if used + room <= width:
            kept.add(hint.name)
            used += room
    return tuple(span for hint in hints if hint.name in kept for span in _item(hint))


def _item(hint: KeyHint) -> Line:
    return Span(f" {hint.key}", "key"), Span(f" {hint.words} ", "dim")


def declared(owner: type[DOMNode]) -> Iterable[Binding]:
    """A class's bindings in the order of their declaration, those of its bases first."""
    for base in reversed(owner.__mro__):
        for binding in base.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding):
                yield binding


@cache
def _order(first: Sequence[str], owners: Sequence[type[DOMNode]]) -> dict[str | None, int]:
    """Return the place of each binding by name."""
    order: dict[str | None, int] = {name: place for place, name in enumerate(first)}
    for owner in owners:
        for binding in declared(owner):
            order.setdefault(binding.id, len(order))
    return order


def active_hints(screen: Screen[object], *, hidden: bool = False) -> list[KeyHint]:
    """Named bindings that do something now, those nearest to the focus first; with `hidden` all of them.

    A screen with `FIRST_KEYS` has the bindings of these names before all others.
    """
    nearest = screen if screen.focused is None else screen.focused
    owners = tuple(type(node) for node in nearest.ancestors_with_self)
    order = _order(tuple(getattr(screen, "FIRST_KEYS", ())), owners)
    found: dict[str, KeyHint] = {}
    for active in screen.active_bindings.values():
        binding = active.binding
        if binding.id is None or not active.enabled or not (binding.show or hidden):
            continue
        key = screen.app.get_key_display(binding)
        before = found.get(binding.id)
        if before is not None and key not in before.key.split():
            key = f"{before.key} {key}"
        if before is None or hidden:
            found[binding.id] = KeyHint(binding.id, key, binding.description, binding.action)
    return sorted(found.values(), key=lambda each: order.get(each.name, len(order)))


class KeyBar(Bar):
    """Shows the bindings that are shown and enabled, in the order of their declaration."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._redraw)
        self._redraw(self.screen)

    def on_resize(self, event: events.Resize) -> None:
        self._redraw(self.screen)

    def _redraw(self, screen: Screen[object]) -> None:
        self.show(key_line(active_hints(screen), self.size.width))
