"""The prompt tab: exactly what was sent to the model."""

from __future__ import annotations

from sessions.state.state import AttemptState
from tui.cockpit.draw.lines import EMPTY, Line, line
from tui.cockpit.screens.agent.page import paragraph


def prompt_lines(attempt: AttemptState, width: int) -> list[Line]:
    """Return every message of every call."""
    lines: list[Line] = []
    for call in attempt.calls:
        for message in call.messages:
            if lines:
                lines.append(EMPTY)
            lines.append(line(f"{call.role.value} {call.call.rpartition('/')[2]} · {message.role}", "rule"))
            lines += paragraph(message.content, width)
    return lines or [line("Nothing was sent to a model yet.", "dim")]


def prompt_text(attempt: AttemptState) -> str:
    """Return all messages as text for the clipboard."""
    return "\n\n".join(message.content for call in attempt.calls for message in call.messages)
