"""Plain text, tables and JSON on standard output. Messages about a command go to standard error: `diagnostics.say`."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from .diagnostics import OutputGone, printable
from .vocabulary import UNKNOWN

GAP = "  "
PIPE_WIDTH = 10_000
"""Width of an output that is not a terminal: programs get unfolded lines."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    right: bool = False
    """Aligned to the right, for numbers; never folded or cut."""
    keep: bool = False
    """Never folded, for names that users copy."""
    fold: int = 14
    """Least width of folded words."""
    drop: int = 0
    """Order of removal from a table that is too wide: greatest first; 0 is never removed."""
    if_known: bool = False
    """Removed if no cell is known."""


def interactive(environ: Mapping[str, str]) -> bool:
    """True if a cockpit can be opened: standard input and output are a terminal that can place text."""
    return (
        is_terminal()
        and sys.stdin is not None
        and sys.stdin.isatty()
        and environ.get("TERM", "") not in ("", "dumb")
    )


def colours(environ: Mapping[str, str]) -> int:
    """Return the number of colours of the terminal: 16 million, 256, or 16 with most other values of TERM."""
    if environ.get("COLORTERM", "").lower() in ("truecolor", "24bit"):
        return 1 << 24
    return 256 if environ.get("TERM", "").endswith(("256color", "kitty")) else 16


def is_terminal() -> bool:
    """True if standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int:
    """Return the number of columns for layout: at least 40, because fewer columns break words apart."""
    return max(40, shutil.get_terminal_size().columns) if is_terminal() else PIPE_WIDTH


def emit(text: str) -> None:
    """Write text and a line end to standard output; raises `OutputGone` if it is closed."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write(printable(text).encode(encoding, errors="replace") + b"\n")


def emit_json(value: object) -> None:
    """Write one JSON document: indented in a terminal, on one line elsewhere."""
    data = msgspec.json.encode(value)
    _write((msgspec.json.format(data, indent=2) if is_terminal() else data) + b"\n")


def emit_line(line: bytes) -> None:
    """Write one JSON line of a stream."""
    _write(line + b"\n")


def _write(data: bytes) -> None:
    if sys.stdout is None:
        raise OutputGone
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except (BrokenPipeError, ValueError) as error:
        raise OutputGone from error
    except OSError as error:
        why = error.strerror or str(error)
        raise OutputGone(f"standard output cannot be written ({why})") from error


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0) -> str:
    """
    Return a table as text without escape codes, the same in a terminal and in a file.

    A table that is too wide for the terminal loses columns with `drop`, then its words are folded. Names and numbers are
    never cut.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    shown = [
        place
        for place, column in enumerate(columns)
        if not (column.if_known and all(row[place] == UNKNOWN for row in cells))
    ]
    room = width() - indent
    widths = {place: _natural(columns[place], [row[place] for row in cells]) for place in shown}
    least = {place: _least(columns[place], widths[place]) for place in shown}
    while _total_width([least[place] for place in shown]) > room and any(
        columns[place].drop for place in shown
    ):
        shown.remove(max(shown, key=lambda place: columns[place].drop))
    while _total_width([widths[place] for place in shown]) > room:
        foldable = [place for place in shown if widths[place] > least[place]]
        if not foldable:
            break
        widths[max(foldable, key=lambda place: widths[place])] -= 1
    lines = []
    for row in [[column.title for column in columns], *cells]:
        folded = [textwrap.wrap(row[place], widths[place], break_on_hyphens=False) or [""] for place in shown]
        for parts in zip_longest(*folded, fillvalue=""):
            line = GAP.join(
                _aligned(part, columns[place], widths[place])
                for place, part in zip(shown, parts, strict=True)
            )
            lines.append(" " * indent + line.rstrip())
    return "\n".join(lines)


def _natural(column: Column, cells: Sequence[str]) -> int:
    return max([len(column.title), *map(len, cells)], default=1) or 1


def _least(column: Column, natural: int) -> int:
    if column.right or column.keep:
        return natural
    return min(natural, max(len(column.title), column.fold))


def _total_width(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _aligned(part: str, column: Column, columns: int) -> str:
    return part.rjust(columns) if column.right else part.ljust(columns)


def wrapped(text: str) -> str:
    """Return the text with long lines broken between words; continued lines keep the indent."""
    columns = width()
    lines = []
    for line in text.splitlines():
        margin = len(line) - len(line.lstrip(" -"))
        lines += textwrap.wrap(
            line, columns, subsequent_indent=" " * margin, break_on_hyphens=False, break_long_words=False
        ) or [""]
    return "\n".join(lines)


def indented(text: str, by: int = 2) -> str:
    """Return the text with every line indented."""
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())
