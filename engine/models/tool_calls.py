"""Tools that a model may call, and the calls in its replies, in every wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from .bookkeeping import field

Turn = Sequence[dict[str, Any]]
"""A reply as the provider wrote it, and as the next request repeats it: the content blocks of Messages, the output items of
Responses, or the one message of Chat Completions."""
LONGEST_INTEGER = 15
"""Digits of the longest integer that a journal keeps as a number."""


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of the arguments, an object."""


class ToolCall(NamedTuple):
    """A call of a tool, as the model wrote it: the tool may not exist, and the arguments may not fit."""

    id: str
    name: str
    arguments: object
    """A dictionary, or the text if it is no JSON object."""


def calls_in(turn: Turn) -> Iterator[ToolCall]:
    """Yield the tool calls of a reply in their order."""
    for part in turn:
        if part.get("type") == "tool_use":
            yield ToolCall(_text(part.get("id")), _text(part.get("name")), part.get("input"))
        elif part.get("type") == "function_call":
            yield ToolCall(
                _text(part.get("call_id")), _text(part.get("name")), read_object(part.get("arguments"))
            )
        for call in part.get("tool_calls") or ():
            name, arguments = (field(call, "function", key) for key in ("name", "arguments"))
            yield ToolCall(_text(field(call, "id")), _text(name), read_object(arguments))


def shown_name(name: object) -> str:
    """Returns the beginning of a call in Markdown for people, which is shown before its arguments are complete."""
    return f"\n\n**{_text(name)}**"


def shown_arguments(arguments: object) -> str:
    """Returns the rest of a call for people; a text of several lines becomes a code block."""
    if not isinstance(arguments, dict):
        return f"\n\n{_block(str(arguments))}\n"
    values = [value if isinstance(value, str) else json.dumps(value) for value in arguments.values()]
    short = [f" {value}" for value in values if value and "\n" not in value]
    blocks = [f"\n\n{_block(value, 'python')}" for value in values if "\n" in value]
    return "".join([*short, *blocks, "\n"])


def keepable(turn: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Returns the turn without what a journal cannot store: lone surrogates, and integers beyond 64 bits."""
    text = json.dumps(list(turn), ensure_ascii=False).encode("utf-8", "replace").decode()
    return tuple(
        json.loads(text, parse_int=lambda digits: int(digits) if len(digits) <= LONGEST_INTEGER else digits)
    )


def _block(text: str, language: str = "") -> str:
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def read_object(text: object) -> object:
    """Returns the JSON object in a text; the text itself if it holds none, and no arguments for an empty text."""
    try:
        value = json.loads(text or "{}") if isinstance(text, str | None) else text
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
