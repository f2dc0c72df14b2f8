"""Python source as styled lines, through pygments, in the style words of the palette."""

from __future__ import annotations

from functools import lru_cache

from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]
from pygments.token import Token, _TokenType  # type: ignore[import-untyped]

from tui.cockpit.draw.lines import Line, Span, clean

LONGEST_LINES = 4000
"""Longer sources are shown plain: colouring them would hold the screen for half a second."""

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
    """The source's lines, safe to draw; plain when there are more than `LONGEST_LINES`."""
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
            lines.append(tuple(row))
            row = [Span(other, style)] if other else []
    if row or not lines:
        lines.append(tuple(row))
    return tuple(lines)
