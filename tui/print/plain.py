"""Plain text, tables and JSON on standard output. Messages about a command go to standard error: `diagnostics.say`."""

from __future__ import annotations

import csv
import io
import shutil
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

import msgspec

from tui.diagnostics import OutputGone, printable
from tui.facts.tables import GAP, Column, Field, T, Table, columns_of, lay_out

PIPE_WIDTH = 10_000
"""Width of an output that is not a terminal: programs get unfolded lines."""


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
    """Return the number of columns for layout, of the terminal: at least 40, as fewer break words apart."""
    return max(40, shutil.get_terminal_size().columns) if is_terminal() else PIPE_WIDTH


def emit(text: str) -> None:
    """Write text and a line end to standard output; raises `OutputGone` if it is closed."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    _write(printable(text).encode(encoding, errors="replace") + b"\n")


def emit_exactly(text: str) -> None:
    """Write text unchanged, for files and pipes; a terminal gets it as from `emit`."""
    if is_terminal():
        emit(text.removesuffix("\n"))
    else:
        _write(text.encode("utf-8", "replace"))


def emit_json(value: object) -> None:
    """Write one JSON document: indented in a terminal, on one line elsewhere. Paths become texts."""
    _write(json_document(value, indented=is_terminal()) + b"\n")


def json_document(value: object, *, indented: bool) -> bytes:
    """Return one JSON document, indented or on one line. Paths become texts."""
    data = msgspec.json.encode(value, enc_hook=_path_text)
    return msgspec.json.format(data, indent=2) if indented else data


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


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
    placed = lay_out(columns, cells, width() - indent)
    lines = []
    titles = [column.title for column in columns]
    for row in [titles, *cells] if any(titles) else cells:
        folded = [
            textwrap.wrap(row[place.column], place.width, break_on_hyphens=False) or [""] for place in placed
        ]
        for parts in zip_longest(*folded, fillvalue=""):
            aligned = [
                part.rjust(place.width) if columns[place.column].right else part.ljust(place.width)
                for part, place in zip(parts, placed, strict=True)
            ]
            lines.append(" " * indent + (" " * GAP).join(aligned).rstrip())
    return "\n".join(lines)


def listing(fields: Sequence[Field[T]], items: Iterable[T]) -> str:
    """Return a table with a row for each item."""
    return table(columns_of(fields), texts_of(fields, items))


def texts_of(fields: Sequence[Field[T]], items: Iterable[T]) -> list[list[str]]:
    """Return the texts of a row for each item."""
    return [[field.cell(item).text for field in fields] for item in items]


def tables_text(tables: Iterable[Table]) -> str:
    """Return tables with their sentences below each other; below a title everything is indented."""
    return "\n\n".join(map(_table_text, (shown for shown in tables if shown.has_content)))


def _table_text(shown: Table) -> str:
    indent = 2 if shown.title else 0
    parts = [shown.title] if shown.title else []
    if shown.rows:
        parts.append(
            table(shown.columns, [[cell.text for cell in row.cells] for row in shown.rows], indent=indent)
        )
    return "\n".join([*parts, *(wrapped(indented(sentence.text, indent)) for sentence in shown.sentences)])


def csv_page(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV under the names of their fields; `None` is an empty cell."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(["" if value is None else value for value in row] for row in rows)
    return page.getvalue().rstrip("\n")


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
