"""Parses Python text. All code that may run in a thread of the parent process parses here.

CPython 3.11 before 3.11.8 keeps the parser's recursion depth in state that all threads share (gh-106905). If a garbage
collection switches threads during `ast.parse`, and the other thread parses too, one of both raises `SystemError`.
Filters of warnings are also shared by all threads. So only one thread parses at a time.
"""

from __future__ import annotations

import ast
import re
import threading
import warnings

_PARSING = threading.Lock()
_LINE_END = re.compile(r"\r\n|\r|\n")


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


def source_lines(source: str) -> list[str]:
    """Return the lines by Python's own count, without line ends. `str.splitlines` also splits at form feeds and U+2028."""
    lines = _LINE_END.split(source)
    return lines if lines[-1] else lines[:-1]
