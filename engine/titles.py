"""The title of a session: one line that a person gives it, shown beside its name."""

from __future__ import annotations

MOST_CHARACTERS = 80


def title_problem(title: str) -> str:
    """Returns why the text cannot be a title, with the next step; empty if it can. An empty text is no title."""
    if not title.isprintable():
        return "the title has line ends or control characters; write it as one line"
    if len(title) > MOST_CHARACTERS:
        return f"the title has {len(title)} characters; shorten it to {MOST_CHARACTERS}"
    return ""
