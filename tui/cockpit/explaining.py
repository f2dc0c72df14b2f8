"""The help of `?`: the focused pane in words, and the keys that work now, in groups and as wide as the screen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.draw.lines import EMPTY, Line, Span, cells, line, wrap
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.widgets.key_bar import KeyHint, active_hints

GROUPS: dict[str, tuple[str, ...]] = {
    "screens": (
        "go.",
        "screen.back",
        "app.quit",
        "app.palette",
        "app.commands",
        "home.new_run",
        "home.report",
        "home.compare",
    ),
    "panes": (
        *("pane.", "agent.zoom", "latency.zoom", "latency.plot", "latency.value", "review.zoom"),
        *("fleet.order", "home.order", "home.reload", "compare.budget"),
    ),
    "move and open": ("table.", "view.", "steps.", "code.unfold", "column.", "assembly."),
    "find and jump (capital: back)": ("screen.find", "screen.next", "screen.match", "jump.", "home."),
    "attempts and code": ("code.", "latency."),
    "decide": ("decide.", "review.skip"),
    "steer": ("screen.pause", "steer."),
    "replay": ("replay.",),
    "form": ("new_run.",),
    "copy and write": ("app.copy", "app.mouse", "attempt.", "report.write"),
    "cockpit": ("app.",),
}
"""Starts of the names of keys, by the title of their group; the longest start counts."""
GAP = 3


def group_of(name: str) -> str:
    """Return the title of a key's group; empty if it has none."""
    starts = [
        (len(start), title) for title, group in GROUPS.items() for start in group if name.startswith(start)
    ]
    return max(starts, default=(0, ""))[1]


class HelpDialog(TextDialog):
    """Explains the focused pane of a screen."""

    def __init__(self, screen: Screen[Any]) -> None:
        focused = screen.focused
        super().__init__(f"help: {focused.id if focused is not None and focused.id else 'this screen'}", [])
        explained = screen.explained() if isinstance(screen, SessionScreen) else ""
        text = "\n".join(filter(None, (_help_of(screen), explained))) or "Wavedeck."
        self._text = text.rstrip("\n")
        self._groups = _key_groups(screen)

    def lines(self, width: int) -> list[Line]:
        """Return the text above the keys, or to their left if that is shorter."""
        text = [line(row) for row in wrap(self._text, width)]
        above = [*text, EMPTY, *in_columns(self._groups, width)]
        room = width - max(map(cells, text)) - GAP
        keys = in_columns(self._groups, room)
        fits = max(map(cells, keys), default=0) <= room
        return min(above, side_by_side([text, keys]), key=len) if fits else above


def _key_groups(screen: Screen[Any]) -> list[list[Line]]:
    """Return the keys that work now: a title and a line a key for each group that has keys."""
    panes = getattr(screen, "PANES", ())
    keys: dict[str, dict[str, KeyHint]] = {title: {} for title in GROUPS}
    for hint in active_hints(screen, hidden=True):
        place = hint.name.removeprefix("pane.")
        if place != hint.name:
            hint = hint._replace(words=panes[int(place) - 1][1])
        group = keys.setdefault(group_of(hint.name), {})
        both_ways = hint.action.replace("-", "")
        before = group.get(both_ways)
        if before is None:
            group[both_ways] = hint
        elif hint.key not in before.key:
            words = before.words if hint.key == before.key.upper() else f"{before.words}, {hint.words}"
            group[both_ways] = before._replace(key=f"{before.key} {hint.key}", words=words)
    return [_block(title, list(group.values())) for title, group in keys.items() if group]


def _block(title: str, hints: Sequence[KeyHint]) -> list[Line]:
    width = max(len(hint.key) for hint in hints)
    return [
        line(title, "head"),
        *((Span(f" {hint.key:<{width}}  ", "key"), Span(hint.words)) for hint in hints),
    ]


def in_columns(blocks: Sequence[list[Line]], width: int) -> list[Line]:
    """Return blocks of lines in as many columns as fit, in their order from the top to the bottom of each column."""
    widths = [max(map(cells, block), default=0) for block in blocks]
    for height in range(max(map(len, blocks), default=0), sum(len(block) + 1 for block in blocks)):
        columns = _fill(blocks, height)
        if sum(max(widths[number] for number in column) + GAP for column in columns) - GAP <= width:
            return side_by_side([_stacked([blocks[number] for number in column]) for column in columns])
    return [row for block in blocks for row in (*block, EMPTY)]


def _fill(blocks: Sequence[list[Line]], height: int) -> list[list[int]]:
    """Return the numbers of the blocks of each column."""
    columns: list[list[int]] = []
    used = 0
    for number, block in enumerate(blocks):
        if columns and used + 1 + len(block) <= height:
            columns[-1].append(number)
            used += 1 + len(block)
        else:
            columns.append([number])
            used = len(block)
    return columns


def _stacked(blocks: Sequence[list[Line]]) -> list[Line]:
    return [row for block in blocks for row in (*block, EMPTY)][:-1]


def side_by_side(columns: Sequence[Sequence[Line]]) -> list[Line]:
    """Return columns of lines as lines."""
    widths = [max(map(cells, column), default=0) + GAP for column in columns]
    return [
        tuple(
            span
            for place, (part, width) in enumerate(zip(row, widths, strict=True), start=1)
            for span in (*part, Span(" " * (width - cells(part)) if place < len(row) else ""))
        )
        for row in zip_longest(*columns, fillvalue=EMPTY)
    ]


def _help_of(screen: Screen[Any]) -> str:
    node: Widget | None = screen.focused
    while node is not None and node is not screen:
        if node.HELP:
            return node.HELP
        node = node.parent if isinstance(node.parent, Widget) else None
    return ""
