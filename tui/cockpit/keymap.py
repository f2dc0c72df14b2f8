"""The names of the cockpit's keys, which `[keys]` in a configuration may give other keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from textual.binding import Binding
from textual.dom import DOMNode

from tui.cockpit.dialogs.dialogs import ConfirmDialog, ReasonDialog, TextDialog
from tui.cockpit.dialogs.finding import FoundDialog
from tui.cockpit.dialogs.line_prompt import LinePrompt
from tui.cockpit.screens.agent.agent import AgentScreen
from tui.cockpit.screens.agent.assembly_view import AssemblyView
from tui.cockpit.screens.agent.steps_view import StepsView
from tui.cockpit.screens.fleet.fleet import FleetScreen
from tui.cockpit.screens.home.home import HomeScreen
from tui.cockpit.screens.latency.latency import LatencyScreen, TimeTable
from tui.cockpit.screens.report.report import ReportScreen
from tui.cockpit.screens.review.review import ReviewScreen
from tui.cockpit.terminal.preferences import check_names
from tui.cockpit.widgets.code import CodePane
from tui.cockpit.widgets.code_column import CodeColumn
from tui.cockpit.widgets.line_view import LineView
from tui.cockpit.widgets.table import LineTable

OWNERS: tuple[type[DOMNode], ...] = (
    HomeScreen,
    FleetScreen,
    AgentScreen,
    LatencyScreen,
    TimeTable,
    ReportScreen,
    ReviewScreen,
    ReasonDialog,
    ConfirmDialog,
    TextDialog,
    LinePrompt,
    FoundDialog,
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
    bases = {base for owner in owners for base in owner.__mro__}
    bindings = (binding for base in bases for binding in base.__dict__.get("BINDINGS", ()))
    return sorted({binding.id for binding in bindings if isinstance(binding, Binding) and binding.id})


def check_keymap(keymap: Mapping[str, str], app: type[DOMNode]) -> None:
    """Raise `Complaint` for a name that no key has, with the nearest right one."""
    if keymap:
        check_names(keymap, key_names(app), table="[keys]", noun="key's name")
