"""Checks how a person wants the cockpit, before the screen is taken."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from textual.theme import BUILTIN_THEMES

from tui.cockpit.terminal import themes
from tui.diagnostics import Complaint

OWN_THEMES = (themes.DARK.name, themes.LIGHT.name)


def check_names(given: Iterable[str], known: Iterable[str], *, table: str, noun: str) -> None:
    """Raise `Complaint` for the first name that is not known, with the nearest right one."""
    names = sorted(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"names are {', '.join(names)}"
            raise Complaint(f"{table} {name!r} is no {noun}; {hint}")


def check_theme(theme: str) -> None:
    """Raise `Complaint` for a theme that does not exist."""
    names = sorted({*OWN_THEMES, *BUILTIN_THEMES})
    if theme not in names:
        raise Complaint(f"unknown theme {theme!r}; themes are {', '.join(names)}")
