"""Draws the sections of a report on the Report screen. Pure functions: the same report gives the same lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui.cockpit.draw.grid import places
from tui.cockpit.draw.lines import Line, Span, cells, clean, joined, line, shorten, wrap
from tui.facts.report import Section, SessionReport, facts_of
from tui.facts.report.bars import BEYOND, axis, bars_of
from tui.facts.report.section import NamedSpeed
from tui.facts.tables import NOTHING, Cell, Column, Row
from tui.facts.vocabulary import speed_style

DIM = "dim"
SCALE = "The scale is linear from 0. The baseline has a mark at 1x, an interval two ends; > is a lower bound, // a cut bar."
NAME_CELLS = 26
LEAST_BAR_CELLS = 16
MOST_BAR_CELLS = 60
LONG = 40
"""A longer text has lines of its own in the facts of a row."""


def shown_rows(section: Section) -> list[Row]:
    """Return the rows of a section with texts that are safe to draw."""
    return [Row(row.key, tuple(map(_shown, row.cells)), row.style) for row in section.rows]


def _shown(cell: Cell) -> Cell:
    return cell._replace(text=clean(cell.text).replace("\n", " "))


def note_lines(sentences: Iterable[str], width: int) -> list[Line]:
    """Return sentences as dim lines."""
    return [line(piece, DIM) for sentence in sentences for piece in wrap(clean(sentence), width)]


def summary_line(report: SessionReport, width: int) -> Line:
    """Return what the session reached, in one line; its last parts go first if it does not fit."""
    facts = facts_of(report)
    parts = [line(facts["tasks"], "bold")]
    parts += [line(facts[name]) for name in ("speed", "attempts", "people") if name in facts]
    while len(parts) > 1 and cells(joined(parts)) > width:
        parts.pop()
    return joined(parts)


def bar_lines(speeds: Sequence[NamedSpeed], width: int) -> list[Line]:
    """Return a bar for each of these speedups, with the scale below, and first what `>>>` means if a bar has it."""
    if not speeds:
        return []
    names = min(NAME_CELLS, max(cells(line(name)) for name, _ in speeds))
    figures = max(len(speed.words) for _, speed in speeds)
    room = min(MOST_BAR_CELLS, width - names - 2)
    beside = room - figures - 2 >= LEAST_BAR_CELLS
    if beside:
        room = min(MOST_BAR_CELLS, width - names - figures - 4)
    bars = bars_of(speeds, room)
    is_bounded = any(BEYOND in bar for bar in bars)
    lines = [line(f"{'':<{names}}  {BEYOND * 3} at least", DIM)] if is_bounded else []
    for (name, speed), bar in zip(speeds, bars, strict=True):
        style = speed_style(speed)
        figure = Span(f"  {speed.words}", style) if beside else Span("")
        lines.append((Span(f"{shorten(clean(name), names):<{names}}  "), Span(bar, style), figure))
    return [*lines, line(f"{'':<{names}}  {axis(speeds, room)}".rstrip(), DIM)]


def cut_cells(columns: Sequence[Column], rows: Sequence[Row], key: str, width: int) -> list[tuple[str, Cell]]:
    """Return titles and known cells of the row with this key that a table of this width does not show, or not wholly."""
    widths = {place.column: place.width for place in places(columns, rows, width)}
    row = next((row for row in rows if row.key == key), Row("", ()))
    return [
        (column.title, cell)
        for place, (column, cell) in enumerate(zip(columns, row.cells, strict=False))
        if column.title and cell.text not in NOTHING and len(cell.text) > widths.get(place, 0)
    ]


def detail_lines(
    key: str, cut: Sequence[tuple[str, Cell]], sections: Sequence[Section], width: int
) -> list[Line]:
    """
    Return what a table has no room for in the row with this key, then what the sections say of it.

    `cut` are the titles and cells that are not wholly on screen; long texts have lines of their own.
    """
    texts = [(title, cell) for title, cell in cut if len(cell.text) > LONG]
    texts += [fact for section in sections for fact in _facts(section, key)[1:]]
    named = [(Span(f"{title} ", DIM), _plainer(cell)) for title, cell in cut if len(cell.text) <= LONG]
    lines = _packed(named, width)
    names = max((len(title) for title, _ in texts), default=0) + 2
    for title, cell in texts:
        for number, piece in enumerate(wrap(cell.text, max(width - names, 20))):
            lines.append((Span(f"{'' if number else title:<{names}}", DIM), Span(piece, cell.style)))
    subject = key.rpartition(":")[2].replace("|", "  ")
    return [(Span(subject, "bold"),), *lines] if lines else []


def _facts(section: Section, key: str | None) -> list[tuple[str, Cell]]:
    """Return the names and the known cells of the row with this key; empty if the section has none."""
    row = next((row for row in section.rows if row.key == key), None)
    if row is None:
        return []
    named = zip(section.columns, map(_shown, row.cells), strict=True)
    return [(column.title, cell) for column, cell in named if cell.text not in NOTHING]


def _plainer(cell: Cell) -> Span:
    """Return a cell as a span; a cell that is dim in a table is plain beside its name."""
    return Span(cell.text, "" if cell.style == DIM else cell.style)


def _packed(parts: Sequence[Line], width: int) -> list[Line]:
    """Parts in as few lines as hold them, with a gap between two."""
    lines: list[Line] = []
    for part in parts:
        if lines and cells(joined((lines[-1], part))) <= width:
            lines[-1] = joined((lines[-1], part))
        else:
            lines.append(part)
    return lines
