"""Python source as styled lines, through pygments, in the style words of the palette."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]

from tui.cockpit.draw.lines import Line, Span, clean, plain

LONGEST_LINES = 4000
"""Longer sources are shown plain: colouring them would hold the screen for half a second."""
LONGEST_COLOURED = 1000
"""Characters of a line that have colours. Thousands of spans in one line would hold the screen at each paint."""

STYLES: dict[_TokenType, str] = {
    Token.Comment: "code-comment",
    Token.Error: "code-error",
    Token.Keyword: "code-keyword",
    Token.Keyword.Constant: "code-number",
    Token.Literal.Number: "code-number",
    Token.Literal.String: "code-string",
    Token.Name.Builtin: "code-builtin",
    Token.Name.Builtin.Pseudo: "code-builtin",
    Token.Name.Class: "code-name",
    Token.Name.Decorator: "code-decorator",
    Token.Name.Function: "code-name",
    Token.Operator.Word: "code-keyword",
}


def _style(token: _TokenType) -> str:
    kind: _TokenType | None = token
    while kind is not None:
        if kind in STYLES:
            return STYLES[kind]
        kind = kind.parent
    return ""


def plain_rows(source: str) -> tuple[Line, ...]:
    """The source's lines, safe to draw, without colours."""
    return tuple((Span(text),) if text else () for text in clean(source).removesuffix("\n").split("\n"))


@lru_cache(maxsize=64)
def highlighted(source: str) -> tuple[Line, ...]:
    """The source's lines, safe to draw; plain when there are more than `LONGEST_LINES`, and behind `LONGEST_COLOURED`."""
    text = clean(source)
    if text.count("\n") > LONGEST_LINES:
        return plain_rows(source)
    lines: list[Line] = []
    row: list[Span] = []
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    for token, value in lexer.get_tokens(text):
        style = _style(token)
        first, *others = value.split("\n")
        if first and row and row[-1].style == style:
            row[-1] = Span(row[-1].text + first, style)
        elif first:
            row.append(Span(first, style))
        for other in others:
            lines.append(_plain_end(row))
            row = [Span(other, style)] if other else []
    if row or not lines:
        lines.append(_plain_end(row))
    return tuple(lines)


def _plain_end(row: Sequence[Span]) -> Line:
    """A line with one plain span for all that begins behind `LONGEST_COLOURED`."""
    length = 0
    for place, span in enumerate(row):
        if length >= LONGEST_COLOURED:
            return (*row[:place], Span(plain(row[place:])))
        length += len(span.text)
    return tuple(row)
