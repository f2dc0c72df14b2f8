"""Parses Python text. All code that may run in a thread of the parent process parses here.

CPython 3.11 before 3.11.8 keeps the parser's recursion depth in state that all threads share (gh-106905). If a garbage
collection switches threads during `ast.parse`, and the other thread parses too, one of both raises `SystemError`.
Filters of warnings are also shared by all threads. So only one thread parses at a time.
"""

from __future__ import annotations

import ast
import io
import re
import threading
import tokenize
import warnings

_PARSING = threading.Lock()
_ROW = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


def parse_python(source: str, filename: str = "<unknown>") -> ast.Module:
    """Return the module's syntax tree. Python's warnings about the text, such as invalid escapes, are ignored.

    Raises `SyntaxError`, `ValueError`, `RecursionError` or `MemoryError` if Python cannot parse the text.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, filename)


def parse_literal(text: str) -> object:
    """Return the value of a literal such as `1e-5`. Raises as `parse_python`; also `ValueError` if it is no literal."""
    with _PARSING:
        return ast.literal_eval(text)


def decode_python(data: bytes) -> tuple[str, str]:
    """Return the text of a Python file, without its BOM, and the encoding that gives the same bytes again.

    The encoding is that of the BOM or the coding line, else UTF-8. Raises `SyntaxError`, `LookupError` or `ValueError` if the
    file is not in this encoding.
    """
    head = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    encoding, _ = tokenize.detect_encoding(io.BytesIO(head).readline)
    text = data.decode(encoding)
    if text.encode(encoding) != data:
        raise ValueError(f"{encoding} does not give the same bytes again")
    return text, encoding


def source_rows(source: str) -> list[str]:
    """Return the lines by Python's own count, with their line ends. `str.splitlines` also splits at form feeds and U+2028."""
    return _ROW.findall(source)


def source_lines(source: str) -> list[str]:
    """Return the lines without line ends."""
    return [row.rstrip("\r\n") for row in source_rows(source)]
