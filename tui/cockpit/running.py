"""Checks the names of columns in a configuration, and runs the cockpit in this terminal until the person leaves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sessions.home import Home
from sessions.state.state import SessionState
from tui.cockpit.app import Cockpit, Mode
from tui.cockpit.screens.fleet import fleet_view
from tui.cockpit.screens.home import home_view
from tui.cockpit.terminal.preferences import check_names, check_theme
from tui.cockpit.terminal.signals import ending_by_signal
from tui.cockpit.terminal.themes import DARK
from tui.cockpit.viewer import ExitNote
from tui.config import Preferences
from tui.facts.report import PRINTED, report_of
from tui.facts.tables import Column
from tui.print.plain import colours

if TYPE_CHECKING:
    from engine.process.launch import EngineStart

TERMINAL_THEME = "ansi-dark"
"""The terminal's own colours: the default where it has 16, or where `NO_COLOR` is set."""


def run_cockpit(
    *,
    home: Path,
    session: str | None,
    mode: Mode,
    readonly: bool = False,
    speed: float = 1.0,
    preferences: Preferences | None = None,
    engine: EngineStart | None = None,
) -> ExitNote:
    """
    Draw until the person leaves; returns the lines to print then.

    `session` is a whole name; `engine` is the start of its engine, if that has only begun.
    Raises `Complaint` for a theme or a key that does not exist.
    """
    few = bool(os.environ.get("NO_COLOR")) or colours(os.environ) == 16
    preferences = preferences or Preferences()
    theme = preferences.theme or (TERMINAL_THEME if few else DARK.name)
    check_theme(theme)
    if preferences.keys:
        # Imported here: it knows all screens, and the first frame needs Home alone.
        from tui.cockpit.keymap import check_keymap

        check_keymap(preferences.keys, Cockpit)
    check_columns(preferences.columns)
    app = Cockpit(
        Home(home),
        session=session,
        mode=mode,
        readonly=readonly,
        speed=speed,
        preferences=preferences,
        engine=engine,
    )
    app.theme = theme
    with ending_by_signal(app.exit):
        return app.run(mouse=preferences.mouse) or ExitNote()


def titles(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the titles of the columns that have one."""
    return tuple(column.title for column in columns if column.title)


TABLES: dict[str, tuple[str, ...]] = {
    "sessions": titles(home_view.COLUMNS),
    "tasks": fleet_view.EXTRAS,
    **{pane: titles(sections(report_of(SessionState()))[0].columns) for pane, sections in PRINTED.items()},
}
"""Names of the columns by table: of Home, of Fleet (beside task, best and instances), and of the Report."""


def check_columns(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise `Complaint` for a table or a column that does not exist, with the nearest right name."""
    check_names(columns, TABLES, table="[columns]", noun="table with columns to choose")
    for table, names in columns.items():
        check_names(names, TABLES[table], table=f"[columns] {table}:", noun="column of this table")
