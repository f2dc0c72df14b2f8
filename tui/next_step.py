"""The next command for a session; the only place with these words."""

from __future__ import annotations


def next_command(session: str, *, running: bool = False, finished: bool) -> str:
    """Return `attach` for a running session, `replay` for a finished session, `resume` for any other."""
    verb = "attach" if running else "replay" if finished else "resume"
    return f"wavedeck {verb} {session}"


def not_stored(session: str) -> str:
    """Return that a finished session still has its live files, which no engine moves to the store."""
    command = next_command(session, finished=False)
    return (
        f"{session} is finished, but not in the store; all its events are kept, move it there with: {command}"
    )
