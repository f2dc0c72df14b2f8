"""What a person does next with a session: the one place that words it."""

from __future__ import annotations


def next_command(session: str, *, running: bool = False, finished: bool) -> str:
    """The command that goes back to a running session, shows a finished one again, or goes on with any other."""
    verb = "attach" if running else "replay" if finished else "resume"
    return f"wavedeck {verb} {session}"
