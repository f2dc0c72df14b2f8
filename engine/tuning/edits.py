"""Changes of a source by position: what is not named stays byte for byte."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import NamedTuple

LINE_END = re.compile(rb"\r\n|\r|\n")


class Edit(NamedTuple):
    """Bytes `start` to `end` of the UTF-8 source become `text`; an insertion where they are equal."""

    start: int
    end: int
    text: str


def edited(source: str, edits: Iterable[Edit]) -> str:
    """The source with all edits made; insertions at one place come in the order given.

    `ValueError` where two of them overlap.
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
    """A source's bytes, by the places that `ast` names."""

    def __init__(self, source: str) -> None:
        self._data = source.encode()
        self._starts = [0, *(found.end() for found in LINE_END.finditer(self._data))]

    def start(self, node: ast.expr) -> int:
        """The byte at which a node begins."""
        return self._starts[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.keyword) -> int:
        """The byte after a node's last."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset

    def of(self, node: ast.expr) -> str:
        """A node as it is written."""
        return self._data[self.start(node) : self.end(node)].decode()

    def replaced(self, node: ast.expr, text: str) -> Edit:
        """The edit that writes something else in a node's place."""
        return Edit(self.start(node), self.end(node), text)

    def added_keyword(self, call: ast.Call, keyword: str) -> Edit:
        """The edit that gives a call, which has an argument, one more keyword, as `num_warps=8`, on the line of its last."""
        arguments: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        place, comma = max(map(self.end, arguments)), False
        at, close = place, self.end(call) - 1
        while at < close:  # between the last argument and the parenthesis stand only these
            byte = self._data[at : at + 1]
            if byte == b"#":
                at = next((found.start() for found in LINE_END.finditer(self._data, at)), close)
                continue
            if byte in {b",", b")"}:
                place, comma = at + 1, byte == b","
            at += 1
        return Edit(place, place, f" {keyword}," if comma else f", {keyword}")
