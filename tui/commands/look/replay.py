"""`wavedeck replay`: show a past session again."""

from __future__ import annotations

import os

import click

from tui.commands.keep.sessions import skipped_words
from tui.commands.opening import open_session
from tui.commands.options import session_argument
from tui.diagnostics import ExitCode, say
from tui.print.narrate import Narrator
from tui.print.plain import emit, interactive
from tui.print.summary import summary


@click.command(name="replay")
@session_argument
@click.option(
    "--speed", type=click.FloatRange(0.5, 100), default=10.0, metavar="X", help="X times as fast. [10]"
)
def replay_command(session: str | None, *, speed: float) -> ExitCode:
    """Replay SESSION, by default the newest, on the screens of a run. Nothing is written and no model is called.

    Without a terminal: print the lines that the run printed. For one attempt, see `wavedeck show`.
    """
    opened = open_session(session, newest=True)
    if interactive(os.environ):
        from tui.commands.look.cockpit import open_cockpit

        return open_cockpit(os.environ, session=opened.name, mode="replay", readonly=True, speed=speed)
    journal = opened.journal
    if journal.skipped:
        say(skipped_words(len(journal.skipped)))
    narrator = Narrator()
    for event in journal.events:
        for line in narrator.lines(event):
            emit(line)
    emit("")
    emit(summary(narrator.state))
    return ExitCode.DONE
