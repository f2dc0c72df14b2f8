"""The names of the cockpit's keys, which `[keys]` in a configuration may give other keys."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from textual.dom import DOMNode

from tui.cockpit.dialogs import ConfirmDialog, ReasonDialog, TextDialog
from tui.cockpit.screens.agent import AgentScreen
from tui.cockpit.screens.fleet import FleetScreen
from tui.cockpit.screens.home import HomeScreen
from tui.cockpit.widgets.code import CodePane
from tui.cockpit.widgets.key_bar import declared
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.steps_view import StepsView
from tui.cockpit.widgets.table import LineTable
from tui.diagnostics import Complaint

OWNERS: tuple[type[DOMNode], ...] = (
    HomeScreen,
    FleetScreen,
    AgentScreen,
    ReasonDialog,
    ConfirmDialog,
    TextDialog,
    LineView,
    LineTable,
    StepsView,
    CodePane,
)
"""Everything with keys but the app itself."""


def key_names(app: type[DOMNode]) -> list[str]:
    """All names, sorted."""
    owners: Iterable[type[DOMNode]] = (app, *OWNERS)
    return sorted({binding.id for owner in owners for binding in declared(owner) if binding.id})


def check_keymap(keymap: Mapping[str, str], app: type[DOMNode]) -> None:
    """`Complaint` for a name that no key has, with the nearest right one."""
    known = key_names(app)
    for name in keymap:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"names are {', '.join(known)}"
            raise Complaint(f"[keys] {name!r} is no key's name; {hint}")
