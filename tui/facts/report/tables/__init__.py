"""The tables of a report over rows: each is made in one place, and shown only if it has data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tui.facts.report.section import Section

from .accuracy import SPLITS, fast_section, overall_section, split_section
from .bias import bias_section, round_section
from .contamination import contamination_section
from .cost import cost_section
from .failures import error_section, refusal_section, stage_section
from .hardware import across_section, device_section
from .progress import iteration_section, pass_section
from .protocols import protocol_section
from .row_set import RowSet
from .winners import winner_section

CONTAMINATION = "contamination"
"""The table that needs the kernels of the winners, not only rows."""
TABLES: dict[str, Callable[[RowSet], Section]] = {
    "overall": overall_section,
    "winners": winner_section,
    **{name: partial(split_section, name) for name in SPLITS},
    "iterations": iteration_section,
    "rounds": round_section,
    "bias": bias_section,
    "pass": pass_section,
    "fast": fast_section,
    "devices": device_section,
    "hardware": across_section,
    "protocols": protocol_section,
    CONTAMINATION: contamination_section,
    "stages": stage_section,
    "errors": error_section,
    "refusals": refusal_section,
    "cost": cost_section,
}
"""Every table by its name, in the order of a report."""
IN_SESSION = frozenset({"overall", "winners", "stages", "errors", "cost"})
"""Tables that the report of one session has already, with more details."""


def table_sections(rows: RowSet) -> tuple[Section, ...]:
    """Return the tables that the report of one session has beside its own sections; those without data are empty."""
    return tuple(table(rows) for name, table in TABLES.items() if name not in IN_SESSION)


def tables_of(rows: RowSet) -> list[Section]:
    """Return the tables with data."""
    return [section for table in TABLES.values() if (section := table(rows)).rows]


__all__ = ["CONTAMINATION", "IN_SESSION", "TABLES", "RowSet", "table_sections", "tables_of"]
