"""Edits a source by byte position; all other bytes stay unchanged."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

LINE_END = re.compile(rb"\r\n|\r|\n")


class Edit(NamedTuple):
    """Replaces the bytes `start` to `end` of the UTF-8 source by `text`; inserts if they are equal."""

    start: int
    end: int
    text: str


def apply_edits(source: str, edits: Iterable[Edit]) -> str:
    """Returns the source with all edits applied; insertions at one place keep their order.

    Raises `ValueError` if two edits overlap.
    """
    data = source.encode()
    parts: list[bytes] = []
    reached = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < reached:
            raise ValueError(f"two edits of the same text, the second at byte {edit.start}")
        parts += [data[reached : edit.start], edit.text.encode()]
        reached = edit.end
    return b"".join((*parts, data[reached:])).decode()


class Text:
    """The bytes of a source, addressed by the positions of `ast` nodes."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0, *(line_end.end() for line_end in LINE_END.finditer(self._data))]

    def start(self, node: ast.expr) -> int:
        """Returns the first byte of a node."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.keyword) -> int:
        """Returns the byte after the last byte of a node."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr) -> str:
        """Returns the text of a node."""
        return self._data[self.start(node) : self.end(node)].decode()

    def replaced(self, node: ast.expr, text: str) -> Edit:
        """Returns the edit that replaces a node."""
        return Edit(self.start(node), self.end(node), text)

    def added_keyword(self, call: ast.Call, keyword: str) -> Edit:
        """Returns the edit that adds a keyword such as `num_warps=8` after the last argument of a call.

        The call must have an argument.
        """
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        place, comma = max(map(self.end, arguments)), False
        at, close = place, self.end(call) - 1
        while at < close:  # only commas, comments, parentheses and spaces follow the last argument
            byte = self._data[at : at + 1]
            if byte == b"#":
                at = next((line_end.start() for line_end in LINE_END.finditer(self._data, at)), close)
                continue
            if byte in {b",", b")"}:
                place, comma = at + 1, byte == b","
            at += 1
        return Edit(place, place, f" {keyword}," if comma else f", {keyword}")
