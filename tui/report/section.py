"""A section of a report, before any format."""

from __future__ import annotations

from dataclasses import dataclass

from tui.tables import Column
from tui.vocabulary import UNKNOWN


@dataclass(frozen=True, slots=True)
class Section:
    """A title, sentences, and a table or a drawing."""

    title: str
    sentences: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    drawing: tuple[str, ...] = ()
    """Lines of equal character widths, drawn as they are."""

    def known(self) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
        """Return columns and rows without the columns that no row knows a value for."""
        places = [
            place
            for place, column in enumerate(self.columns)
            if not column.if_known or any(row[place] != UNKNOWN for row in self.rows)
        ]
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return tuple(self.columns[place] for place in places), rows
