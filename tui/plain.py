"""Plain text and JSON on standard output: what is asked for goes there, what is said about it goes to `diagnostics.say`."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec

from .diagnostics import OutputGone, printable

UNKNOWN = "-"
"""What stands where something was not measured or is not known."""
GAP = "  "
PIPE_WIDTH = 10_000
"""Columns of an output that is no terminal: nothing is folded or cut for a program that reads."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    right: bool = False
    """Numbers stand on the right, and are never folded or cut."""
    keep: bool = False
    """Never folded: names that people copy."""
    fold: int = 14
    """Columns that folded words keep at least."""
    drop: int = 0
    """Left out of a table that is too wide, greatest first; 0 stays."""
    if_known: bool = False
    """Left out where nothing in it is known."""


def interactive(environ: Mapping[str, str]) -> bool:
    """Whether a cockpit can be opened: a terminal on both sides, and one that can place text."""
    return (
        is_terminal()
        and sys.stdin is not None
        and sys.stdin.isatty()
        and environ.get("TERM", "") not in ("", "dumb")
    )


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout is not None and sys.stdout.isatty()


def width() -> int:
    """Columns to lay out for; at least 40, since less only breaks words apart."""
    return max(40, shutil.get_terminal_size().columns) if is_terminal() else PIPE_WIDTH


def emit(text: str) -> None:
    """Write text and a line end to standard output; `OutputGone` when it takes no more."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write(printable(text).encode(encoding, errors="replace") + b"\n")


def emit_json(value: object) -> None:
    """Write one JSON document, indented where a person reads it, on one line elsewhere."""
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
    Rows under their titles, without escapes, so that they read the same in a file.

    In a terminal words are folded and columns with `drop` left out until it fits; names and numbers are never cut.
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
    while _across([least[place] for place in shown]) > room and any(columns[place].drop for place in shown):
        shown.remove(max(shown, key=lambda place: columns[place].drop))
    while _across([widths[place] for place in shown]) > room:
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


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _aligned(part: str, column: Column, across: int) -> str:
    return part.rjust(across) if column.right else part.ljust(across)


def wrapped(text: str) -> str:
    """Lines that are too long for the terminal, broken between words below where they began."""
    across = width()
    lines = []
    for line in text.splitlines():
        margin = len(line) - len(line.lstrip(" -"))
        lines += textwrap.wrap(
            line, across, subsequent_indent=" " * margin, break_on_hyphens=False, break_long_words=False
        ) or [""]
    return "\n".join(lines)


def indented(text: str, by: int = 2) -> str:
    """Every line of a text moved to the right."""
    return "\n".join(" " * by + line if line else "" for line in text.splitlines())


def count(number: int | None) -> str:
    """A count as people read it, `1,234`."""
    return UNKNOWN if number is None else f"{number:,}"


def size(number: float | None) -> str:
    """Bytes as people read them, `1.5 GiB`."""
    if number is None:
        return UNKNOWN
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def duration(seconds: float | None) -> str:
    """A duration as people read it: `0.4 s`, `1 min 12 s`, `2 h 5 min`."""
    if seconds is None:
        return UNKNOWN
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def money(usd: float | None) -> str:
    """A cost in US dollars; unknown where no price is configured."""
    return UNKNOWN if usd is None else f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"
