"""The help of `?`, in a panel beside the screen: what it answers, its keys by purpose, its signs, its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from textual.screen import Screen
from textual.widget import Widget

from tui.actions.catalogue import ACTIONS
from tui.cockpit.dialogs.dialogs import TextDialog
from tui.cockpit.draw.grid import spaced
from tui.cockpit.draw.lines import Line, Span, cells, clean, line, wrap
from tui.cockpit.screens.acting import ActingScreen
from tui.cockpit.screens.base import SessionScreen
from tui.cockpit.widgets.key_bar import KeyHint, active_hints
from tui.cockpit.widgets.screens_bar import PLACES
from tui.facts.doing import WORDS
from tui.facts.vocabulary import ACCEPTED, CONFIRMED, FINDING, LETTERS, REJECTED, WAITS, words

GROUPS: dict[str, tuple[str, ...]] = {
    "start": ("home.new_run", "home.resume", "home.demo", "home.example", "home.own_kernel", "new_run.start"),
    "open": ("table.open", "table.mark", "code.unfold", "steps."),
    "go to": ("go.", "app.commands"),
    "back": ("screen.back", "table.show_all", "view.end_find", "app.quit"),
    "jump": ("jump.",),
    "find": ("screen.find", "screen.next", "screen.match", "home.find"),
    "look": ("pane.", "agent.", "latency.", "review.", "code.", "fleet.", "assembly.", "home."),
    "decide": ("decide.",),
    "steer": ("screen.pause", "steer."),
    "replay": ("replay.",),
    "fill in": ("new_run.",),
    "take": ("app.copy", "attempt."),
    "move": ("table.", "view.", "column."),
    "app": ("app.",),
}
"""Starts of the names of keys, by what a person wants to do; the longest start counts."""
TITLE = 8
"""Cells of the title before the keys of a group."""
TERM = re.compile(r" *(\S(?:.{0,11}\S)?)(?: {2,})(\S.*)")
"""A line of a help text that explains a term."""
INDENT = 4
"""Cells before the further lines of a term."""
ENTRIES = re.compile(r"\S \S.*?(?: {2,}\S \S.*?)+")
"""A line of a help text with several signs, each with its meaning."""
VERBS = ("find", "hint", "attempt", "fork")
"""Actions of the `:` line without a key of their own on most screens; the help has those that are possible."""


def group_of(name: str) -> str:
    """Return the title of a key's group; empty if it has none."""
    starts = [
        (len(start), title) for title, group in GROUPS.items() for start in group if name.startswith(start)
    ]
    return max(starts, default=(0, ""))[1]


class HelpDialog(TextDialog):
    """Explains a screen and its focused pane."""

    def __init__(self, screen: Screen[Any]) -> None:
        focused = screen.focused
        super().__init__(f"help: {focused.id if focused is not None and focused.id else 'this screen'}", [])
        self._explained = screen.NAME if isinstance(screen, SessionScreen) else ""
        explained = screen.explained() if isinstance(screen, SessionScreen) else ""
        text = "\n".join(filter(None, (_help_of(screen), explained)))
        self._answers, _, self._text = text.partition("\n\n")
        self._keys = _keys(screen)
        if self._explained:
            self._keys["type"] = [
                (Span(f":{ACTIONS[name].usage}", "key"),)
                for name in VERBS
                if not ACTIONS[name].event or (isinstance(screen, ActingScreen) and screen.is_possible(name))
            ]

    def lines(self, width: int) -> list[Line]:
        """Return what the screen answers, keys, signs and columns in less than `width` cells: a scroll bar may take one."""
        width -= 1
        place = PLACES.get(self._explained)
        title = wrap(f"{place.title}: {place.answers}.", width) if place is not None else []
        legend = [row for kind in SIGNS.get(self._explained, ()) for row in _flow(kind, LEGEND[kind], width)]
        keys = [row for title, hints in self._keys.items() for row in _flow(title, hints, width)]
        columns = explained_lines(self._text, width) if self._text else []
        answers = [*(line(row, "bold") for row in title), *explained_lines(self._answers, width)]
        # The columns of a session's screen fill the panel: its keys and signs come before.
        return spaced([answers, [] if place else columns, keys, legend, columns if place else []])


_STATES = {letter: word for letter, word, *_ in WORDS.values()}
_STATES |= {"t": "timing", "p": "paused", "s": "stopped", "m": "model is silent", "a": "agent's turn"}


def _sign(sign: str, meaning: str, style: str = "bold") -> Line:
    return Span(sign, style), Span(f" {meaning}")


LEGEND: dict[str, list[Line]] = {
    "now": [_sign(letter, word) for letter, word in _STATES.items()],
    "verdict": [_sign(letter, words(verdict)) for verdict, letter in LETTERS.items()],
    "mark": [
        _sign(WAITS, "waits for you"),
        _sign(ACCEPTED, "accepted"),
        _sign(REJECTED, "rejected"),
        _sign(CONFIRMED, "confirmed by the exam"),
        _sign(FINDING, "has findings"),
    ],
    "colour": [
        _sign("green", "faster", "good"),
        _sign("yellow", "waits for you", "warn"),
        _sign("red", "wrong", "bad"),
        _sign("blue", "runs", "busy"),
    ],
}
"""Signs of the screens of a session, by what they are about."""
SIGNS = {
    "fleet": ("now", "verdict", "mark", "colour"),
    "agent": ("now", "verdict", "mark"),
    "latency": ("verdict", "mark", "colour"),
    "review": ("mark", "colour"),
    "report": ("verdict", "mark", "colour"),
}
"""The kinds of signs that each screen shows."""


def _flow(title: str, phrases: Iterable[Line], width: int) -> list[Line]:
    """Return phrases behind a title, in as many lines as they need."""
    rows: list[Line] = []
    for phrase in phrases:
        if rows and cells((*rows[-1], *phrase)) + 2 <= width:
            rows[-1] = (*rows[-1], Span("  "), *phrase)
        else:
            rows.append((Span(f"{'' if rows else title:<{TITLE}}", "head"), *phrase))
    return rows


def _keys(screen: Screen[Any]) -> dict[str, list[Line]]:
    """Return the keys that work now, by group; two keys of one action are one entry."""
    panes = getattr(screen, "PANES", ())
    groups: dict[str, dict[str, KeyHint]] = {title: {} for title in GROUPS}
    for hint in active_hints(screen, hidden=True):
        place = hint.name.removeprefix("pane.")
        if place != hint.name:
            hint = hint._replace(words=panes[int(place) - 1][1])
        group = groups.setdefault(group_of(hint.name), {})
        both_ways = hint.action.replace("-", "")
        before = group.get(both_ways)
        if before is None:
            group[both_ways] = hint
        elif hint.key.split()[0] not in before.key:
            of_both = before.words if hint.key == before.key.upper() else f"{before.words}, {hint.words}"
            group[both_ways] = before._replace(key=f"{before.key} {hint.key}", words=of_both)
    return {
        title: [(Span(hint.key, "key"), Span(f" {hint.words}")) for hint in group.values()]
        for title, group in groups.items()
        if group
    }


def explained_lines(text: str, width: int) -> list[Line]:
    """Return a help text in the width of the panel: its paragraphs, and its terms with their explanations."""
    parts: list[tuple[str, str]] = []
    for row in text.rstrip("\n").split("\n"):
        term = TERM.fullmatch(row)
        if ENTRIES.fullmatch(row.strip()):
            parts += [(entry[:2], entry[2:]) for entry in re.split(r" {2,}(?=\S \S)", row.strip())]
        elif term is not None:
            parts.append((f"{term[1]}  ", term[2]))
        elif not row.strip() or not parts or not parts[-1][1] or (parts[-1][0] and not row.startswith(" ")):
            parts.append(("", row.strip()))
        else:
            parts[-1] = (parts[-1][0], f"{parts[-1][1]} {row.strip()}")
    shown: list[Line] = []
    for name, words_of_it in parts:
        first, *further = wrap(clean(name + words_of_it), width - INDENT if name else width)
        shown.append((Span(first[: len(name)], "bold"), Span(first[len(name) :])))
        shown += [line(" " * INDENT * bool(name) + row) for row in further]
    return shown


def _help_of(screen: Screen[Any]) -> str:
    node: Widget | None = screen.focused
    while node is not None and node is not screen:
        if node.HELP:
            return node.HELP
        node = node.parent if isinstance(node.parent, Widget) else None
    return ""
