"""Reads the bookkeeping of a reply: the token counts, the stop reason and the model's id, as the server's JSON has them.

A complete reply is paid for, so it is kept whatever its bookkeeping says: nothing here raises an exception. A value
that cannot be right is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sessions.events import Usage

MOST_TOKENS = 1_000_000_000
"""Largest count that a single call can have; a larger count is an error of the server."""
STOP_WORD = re.compile(r"[A-Za-z0-9_. -]{1,60}")
MODEL_ID = re.compile(r"[!-~]{1,200}")
UNKNOWN = "unknown"
"""Stop reason of a model that stopped, if the server's word for the reason cannot be read."""


def field(value: object, *names: str) -> object:
    """Returns the value at a path of names; `None` if a name is missing or a value on the path is no JSON object."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def read_count(value: object) -> int | None:
    """Returns a token count; `None` (unknown) if the value is no whole number from 0 to `MOST_TOKENS`.

    A float without a fraction is a count: some servers write 1000 as 1000.0. A text or a bool is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not 0 <= value <= MOST_TOKENS or value != int(value):
        return None
    return int(value)


def read_usage(
    *, input_tokens: object, output_tokens: object, cached_tokens: object, cache_write_tokens: object
) -> Usage:
    """Returns the usage; cached and written tokens are part of the input tokens.

    If these parts are more than the whole, they are unknown.
    """
    whole = read_count(input_tokens)
    cached, written = read_count(cached_tokens), read_count(cache_write_tokens)
    if whole is not None and (cached or 0) + (written or 0) > whole:
        cached = written = None
    return Usage(whole, read_count(output_tokens), cached, written)


def used_tokens(usage: Usage) -> int | None:
    """Returns the tokens of a call, in and out; `None` if one of the two counts is unknown."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def read_stop_reason(word: object, words: Mapping[str, str]) -> str:
    """Returns the stop reason, translated by `words`; empty if the model has not stopped."""
    if not word:
        return ""
    if not isinstance(word, str) or not STOP_WORD.fullmatch(word):
        return UNKNOWN
    return words.get(word, word)


def read_model(value: object) -> str:
    """Returns the id of a model; empty if the value is none."""
    return value if isinstance(value, str) and MODEL_ID.fullmatch(value) else ""
