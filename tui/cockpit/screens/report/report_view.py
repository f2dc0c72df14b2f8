"""Draws the sections of a report on the Report screen. Pure functions: the same report gives the same lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tui.cockpit.draw.lines import Line, Span, cells, clean, joined, line, shorten, wrap
from tui.facts.report import Section, SessionReport, facts_of
from tui.facts.report.bars import PLAIN, Glyphs, axis, bars_of
from tui.facts.report.section import TimedWinner
from tui.facts.tables import NOTHING, Cell, Row
from tui.facts.vocabulary import speed_style

DIM = "dim"
GLYPHS = Glyphs()
NAME_CELLS = 26
LEAST_BAR_CELLS = 16
MOST_BAR_CELLS = 60
FACT_CELLS = 15


def shown_rows(section: Section) -> list[Row]:
    """Return the rows of a section with texts that are safe to draw."""
    return [Row(row.key, tuple(map(_shown, row.cells)), row.style) for row in section.rows]


def _shown(cell: Cell) -> Cell:
    if cell.style == "bar":
        return Cell(cell.text.replace(PLAIN.bar, GLYPHS.bar))
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


def bar_lines(winners: Sequence[TimedWinner], width: int) -> list[Line]:
    """Return a bar for each of these winners, with the scale below, and first what `>>>` means if a bar has it."""
    if not winners:
        return []
    bars = bars_of(winners, MOST_BAR_CELLS, GLYPHS)
    names = min(NAME_CELLS, max(cells(line(bar.name)) for bar in bars))
    figures = max(len(bar.figure) for bar in bars)
    room = min(MOST_BAR_CELLS, width - names - 2)
    beside = room - figures - 2 >= LEAST_BAR_CELLS
    if beside:
        room = min(MOST_BAR_CELLS, width - names - figures - 4)
    is_bounded = any(GLYPHS.beyond in bar.drawing for bar in bars)
    lines = [line(f"{'':<{names}}  {GLYPHS.beyond * 3} at least", DIM)] if is_bounded else []
    for winner, bar in zip(winners, bars_of(winners, room, GLYPHS), strict=True):
        style = speed_style(winner.speed)
        figure = Span(f"  {bar.figure}", style) if beside else Span("")
        lines.append(
            (Span(f"{shorten(clean(bar.name), names):<{names}}  "), Span(bar.drawing, style), figure)
        )
    return [*lines, line(f"{'':<{names}}  {axis(winners, room)}".rstrip(), DIM)]


def detail_lines(sections: Sequence[Section], key: str | None, width: int) -> list[Line]:
    """
    Return what the sections say of one row: why a winner is fast, and where its kernel lies.

    Of the first section, these are the columns that a narrow table leaves out.
    """
    first, *rest = (_facts(section, key) for section in sections)
    if not first:
        return []
    lines: list[Line] = [(Span(first[0][1].text, "bold"),)]
    optional = {column.title for column in sections[0].columns if column.drop}
    named = [(Span(f"{name} ", DIM), _plainer(cell)) for name, cell in first if name in optional]
    lines += _packed(named, width)
    for facts in rest:
        for name, cell in facts[1:]:
            for number, piece in enumerate(wrap(cell.text, max(width - FACT_CELLS, 20))):
                lines.append((Span(f"{'' if number else name:<{FACT_CELLS}}", DIM), Span(piece, cell.style)))
    return lines


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
