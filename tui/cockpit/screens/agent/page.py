"""Parts of a page: tables, wrapped text, and blocks with empty lines between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from harness.wire.results.kernel_counts import Profile
from sessions.state.state import AttemptState, InstanceState
from tui.cockpit.draw.grid import heading, places, row_line
from tui.cockpit.draw.lines import EMPTY, Line, clean, line, wrap
from tui.cockpit.widgets.line_view import LineView
from tui.facts.tables import Column, PlacedColumn, Row, Table


class PageView(LineView):
    """Shows the page of the chosen tab."""

    HELP = """\
What the judge says of the attempt; digits choose the tab.

verdict    an error: the element, expected, got, the candidate's lines (`e`
           goes there), which cases pass. A correct attempt: its speedup with
           interval, the tolerance that its worst element used, the exam, and
           its times case by case. The exam judges an instance's best attempt
           at its end on cases that no model sees.
speed      all times by case and GPU with the state of the device. Without a
           measurement the reason, and the bytes that were counted.
           Samples are those of the baseline + those of this attempt. Sustained
           times (`wavedeck eval --sustained`): this attempt / the baseline
resources  a row for each binary: registers, spills, LDS, waves and what
           limits them, matrix instructions, widths of loads; then how it was
           launched
profile    what the hardware counted in one call, the time of each launch, and
           the bytes that the interpreter counted
stages     the six stages, sandbox, proof, evidence, versions
prompt     exactly what was sent to the model

`j` `k` scroll, `h` `l` sideways, `z` gives the pane the whole screen, `y`
copies the whole trace, prompt or table.
"""


class PageSubject(NamedTuple):
    """The attempt that a page is about, with what the page compares it with."""

    attempt: AttemptState
    instance: InstanceState | None = None
    base: AttemptState | None = None
    """The attempt that it was made from."""
    profiles: Mapping[str, Profile] = {}
    """Its latest profile, by the attempt's name; beside it that of the baseline in the same case."""
    is_profiled: bool = False
    """True while a profile is taken."""
    pinned: bool = False
    """True if the first lines of the verdict are on screen above the page."""
    session: str = ""
    can_act: bool = True
    """False in a replay or a view for reading only, where no key decides."""
    stopped: bool = False
    """True if no engine runs that waits for a decision."""
    chosen_error: int | None = None
    """The line of the candidate that a person went to last, of those that the error names."""


def spaced(blocks: Iterable[Sequence[Line]]) -> list[Line]:
    """Return blocks of lines with an empty line between two; empty blocks are left out."""
    lines: list[Line] = []
    for block in blocks:
        if block:
            lines += [EMPTY, *block] if lines else block
    return lines


def tables_lines(tables: Iterable[Table], width: int) -> list[Line]:
    """Return tables with titles and sentences, an empty line between two; those without content are left out."""
    return spaced(table_lines(shown, width) for shown in tables if shown.has_content)


def table_lines(shown: Table, width: int) -> list[Line]:
    """Return a table with its title and sentences. Words that do not fit into their column are folded."""
    lines = paragraph(shown.title, width, "head")
    if shown.rows:
        placed = places(shown.columns, shown.rows, width)
        if any(column.title for column in shown.columns):
            lines.append(heading(shown.columns, placed))
        lines += [line for row in shown.rows for line in _row_lines(shown.columns, placed, row)]
    return lines + [line for text, style, *_ in shown.sentences for line in paragraph(text, width, style)]


def _row_lines(columns: Sequence[Column], placed: Sequence[PlacedColumn], row: Row) -> Iterator[Line]:
    folded = [wrap(clean(row.cells[place.column].text), place.width) for place in placed]
    for texts in zip_longest(*folded, fillvalue=""):
        cells = list(row.cells)
        for place, text in zip(placed, texts, strict=True):
            cells[place.column] = cells[place.column]._replace(text=text)
        yield row_line(columns, placed, replace(row, cells=tuple(cells)))


def paragraph(text: str, width: int, style: str = "") -> list[Line]:
    """Return text from outside as wrapped lines, safe to draw; nothing for an empty text."""
    if not text:
        return []
    return [line(row, style) for row in wrap(clean(text), width)]
