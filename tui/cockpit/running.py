"""Checks the names of keys and columns in a configuration, and runs the cockpit in this terminal until the person leaves."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from textual.dom import DOMNode

from sessions.home import Home
from sessions.state.state import SessionState
from tui.cockpit.app import Cockpit, Mode
from tui.cockpit.dialogs.dialogs import ConfirmDialog, ReasonDialog, TextDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.agent.assembly_view import AssemblyView
from tui.cockpit.screens.agent.steps_view import StepsView
from tui.cockpit.screens.fleet import fleet_view
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home import home_view
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.latency.latency import LatencyScreen
from tui.cockpit.screens.report.comparison import ComparisonScreen
from tui.cockpit.screens.report.merged_report import MergedReportScreen
from tui.cockpit.screens.report.report import ReportScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.cockpit.terminal.preferences import Preferences, check_names, check_theme
from tui.cockpit.terminal.signals import ending_by_signal
from tui.cockpit.viewer import ExitNote
from tui.cockpit.widgets.code import CodePane
from tui.cockpit.widgets.code_column import CodeColumn
from tui.cockpit.widgets.key_bar import declared
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable
from tui.facts.report import PRINTED, report_of
from tui.facts.tables import Column
from tui.print.plain import colours

if TYPE_CHECKING:
    from engine.process.launch import EngineStart

OWNERS: tuple[type[DOMNode], ...] = (
    HomeScreen,
    FleetScreen,
    AgentScreen,
    LatencyScreen,
    ReportScreen,
    MergedReportScreen,
    ComparisonScreen,
    ReviewScreen,
    ReasonDialog,
    ConfirmDialog,
    TextDialog,
    LinePrompt,
    LineView,
    LineTable,
    StepsView,
    CodePane,
    CodeColumn,
    AssemblyView,
)
"""Everything with keys but the app itself."""


def key_names(app: type[DOMNode]) -> list[str]:
    """All names, sorted."""
    # Imported here: the first frame does not need the form of a new run.
    from tui.cockpit.dialogs.choosing import ChoiceDialog
    from tui.cockpit.screens.new_run.new_run import NewRunScreen

    owners: Iterable[type[DOMNode]] = (app, *OWNERS, NewRunScreen, ChoiceDialog)
    return sorted({binding.id for owner in owners for binding in declared(owner) if binding.id})


def check_keymap(keymap: Mapping[str, str], app: type[DOMNode]) -> None:
    """Raise `Complaint` for a name that no key has, with the nearest right one."""
    if keymap:
        check_names(keymap, key_names(app), table="[keys]", noun="key's name")


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
    theme: str | None = None,
    engine: EngineStart | None = None,
) -> ExitNote:
    """
    Draw until the person leaves; returns the lines to print then.

    `session` is a whole name; `theme` replaces the default; `engine` is the start of its engine, if that has only begun.
    Raises `Complaint` for a theme or a key that does not exist.
    """
    few = bool(os.environ.get("NO_COLOR")) or colours(os.environ) == 16
    preferences = preferences or Preferences()
    chosen = theme or (TERMINAL_THEME if few else preferences.theme)
    check_theme(chosen)
    if preferences.keys:
        # Imported here: it knows all screens, and the first frame needs Home alone.
        from tui.cockpit.running import check_keymap

        check_keymap(preferences.keys, Cockpit)
    check_columns(preferences.columns)
    app = Cockpit(
        Home(home),
        session=session,
        mode=mode,
        readonly=readonly,
        speed=speed,
        preferences=dataclasses.replace(preferences, theme=chosen),
        engine=engine,
    )
    app.theme = chosen
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
