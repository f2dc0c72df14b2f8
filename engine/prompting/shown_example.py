"""Finds the 1-shot example in a prompt that was sent."""

from __future__ import annotations

from collections.abc import Iterable

from engine.reply.candidate import fenced_blocks
from sessions.events import Message

HEADING = "# An example of the style\n"
"""The heading in `engine/prompts/_parts.j2`."""


def shown_example(messages: Iterable[Message]) -> str:
    """Returns the source of the example in these messages; empty if they show none."""
    for message in messages:
        _, heading, rest = message.content.partition(HEADING)
        if heading:
            return next((block.source for block in fenced_blocks(rest)), "")
    return ""
