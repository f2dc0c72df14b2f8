"""The tables whose columns a person can choose in `[columns]` of a configuration, and the names of these columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sessions.state import SessionState
from tui.cockpit import fleet_view, home_view
from tui.cockpit.preferences import check_names
from tui.facts.report import PANES, report_of
from tui.tables import Column


def titles(columns: Sequence[Column]) -> tuple[str, ...]:
    """Return the titles of the columns that have one."""
    return tuple(column.title for column in columns if column.title)


TABLES: dict[str, tuple[str, ...]] = {
    "sessions": titles(home_view.COLUMNS),
    "tasks": fleet_view.EXTRAS,
    **{pane: titles(sections(report_of(SessionState()))[0].columns) for pane, sections in PANES.items()},
}
"""Names of the columns by table: of Home, of Fleet (beside task, best and instances), and of the Report."""


def check_columns(columns: Mapping[str, Sequence[str]]) -> None:
    """Raise `Complaint` for a table or a column that does not exist, with the nearest right name."""
    check_names(columns, TABLES, table="[columns]", noun="table with columns to choose")
    for table, names in columns.items():
        check_names(names, TABLES[table], table=f"[columns] {table}:", noun="column of this table")
