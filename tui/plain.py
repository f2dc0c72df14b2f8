"""Plain text and JSON on standard output: what is asked for goes there, what is said about it goes to `diagnostics.say`."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .diagnostics import OutputGone, printable

UNKNOWN = "-"
"""What stands where something was not measured or is not known."""
PIPE_WIDTH = 10_000
"""Columns of an output that is no terminal: nothing is folded or cut for a program that reads."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    title: str
    right: bool = False
    """Numbers stand on the right."""
    keep: bool = False
    """Never folded: names that people copy."""


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
    """Write text and a line end to standard output; `OutputGone` when nobody reads it."""
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


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0) -> str:
    """Rows under their titles, as wide as the terminal; without escapes, so it reads the same in a file."""
    cells = [[printable(cell) for cell in row] for row in rows]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(columns):
        whole = column.keep or column.right
        title = column.title
        if column.right:
            # Rich aligns nothing that it may not fold.
            longest = max([len(title), *(len(row[place]) for row in cells)])
            title = title.rjust(longest)
            for row in cells:
                row[place] = row[place].rjust(longest)
        grid.add_column(title, no_wrap=whole, overflow="ignore" if whole else "fold")
    for row in cells:
        grid.add_row(*map(Text, row))
    page = io.StringIO()
    Console(file=page, width=width() - indent, color_system=None, force_terminal=False).print(grid)
    lines = [" " * indent + line.rstrip() for line in page.getvalue().splitlines()]
    return "\n".join(line for line in lines if line.strip())


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
