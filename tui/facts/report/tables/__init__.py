"""The tables of a report over all attempts: each is a function of one DataFrame, and shown only if it has data.

They need pandas, of the extra `reports`; only their calls import it.
"""

from __future__ import annotations

from collections.abc import Callable

from tui.facts.report.section import Section

from .accuracy import SPLITS, fast, overall, seeds, split
from .contamination import contamination
from .failures import errors, protocols, refusals, stages
from .hardware import across, cost, devices, winners
from .progress import bias, iterations, passes, rounds
from .row_set import RowSet

CONTAMINATION = "contamination"
"""The table that needs the kernels of the winners, not only rows."""
TABLES: dict[str, Callable[[RowSet], Section]] = {
    "overall": overall,
    "seeds": seeds,
    "winners": winners,
    **{name: split(name) for name in SPLITS},
    "iterations": iterations,
    "rounds": rounds,
    "bias": bias,
    "pass": passes,
    "fast": fast,
    "devices": devices,
    "hardware": across,
    "protocols": protocols,
    CONTAMINATION: contamination,
    "stages": stages,
    "errors": errors,
    "refusals": refusals,
    "cost": cost,
}
"""Every table by its name, in the order of a report."""
IN_SESSION = frozenset({"winners", "stages", "errors", "cost"})
"""Tables that the report of one session has already, with more details."""


def tables_of(rows: RowSet, *, but: frozenset[str] = frozenset()) -> list[Section]:
    """Return the tables with data, without those named in `but`."""
    if not rows.rows:
        return []
    return [section for name, table in TABLES.items() if name not in but and (section := table(rows)).rows]


__all__ = ["CONTAMINATION", "IN_SESSION", "TABLES", "RowSet", "tables_of"]
