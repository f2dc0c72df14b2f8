"""Open the cockpit, and print the last lines after it has closed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sessions import Home
from sessions.home import home_from
from tui.cockpit.running import run_cockpit
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.vocabulary import next_command
from tui.print.plain import emit
from tui.print.summary import next_line, summary

if TYPE_CHECKING:
    from engine.process.launch import EngineStart


def open_cockpit(
    environ: Mapping[str, str],
    *,
    session: str | None,
    mode: Literal["live", "replay", "home"],
    readonly: bool = False,
    speed: float = 1.0,
    engine: EngineStart | None = None,
) -> ExitCode:
    """Run the cockpit until the user quits, then print how to come back.

    `engine` is the start of the session's engine, if it has only begun; raises its error if it fails.
    """
    preferences = load({}, environ=environ, folder=Path.cwd()).preferences
    home = home_from(environ)
    try:
        note = run_cockpit(
            home=home.root,
            session=session,
            mode=mode,
            readonly=readonly,
            speed=speed,
            engine=engine,
            preferences=preferences,
        )
    except Complaint as error:
        if mode != "live":
            raise
        if engine is not None:
            engine.wait()
        raise Complaint(
            f"{error}; {session} is still running, come back with: wavedeck attach {session}"
        ) from error
    for line in note.unsent:
        say(line)
    if engine is not None and not engine.is_done:
        for line in note.lines:
            say(line)
        engine.wait()
        return ExitCode.DONE
    if engine is not None:
        engine.wait()
    watched = session if mode == "live" else None
    over = watched is not None and not home.files(watched).running
    if watched is not None and over:
        emit(ended(home, watched))
    if note.failed or not over:
        for line in note.lines:
            say(line)
    return ExitCode.FAILED if note.failed else ExitCode.DONE


def ended(home: Home, session: str) -> str:
    """Return the summary of a session that ended in the cockpit, and the next command."""
    # Imported here: the cockpit starts without git.
    from sessions.catalog import session_state

    state = session_state(home, session)
    return f"{summary(state)}\n{next_line(next_command(session, finished=state.finished))}"
