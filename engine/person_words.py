"""The part of a prompt that quotes what a person says."""

from __future__ import annotations

from collections.abc import Sequence

REQUEST = "\n# Request\n"
"""The heading before which the part stands."""


def add_words(text: str, words: Sequence[str]) -> str:
    """Returns a prompt with a person's words before its request, or at its end if the format has no such heading."""
    if not words:
        return text
    part = "\n".join(["# What a person says", "", *(f"- {line}" for line in words)])
    before, heading, request = text.rpartition(REQUEST)
    return f"{before}\n{part}\n{heading}{request}" if heading else f"{text.rstrip()}\n\n{part}\n"
