"""`wavedeck resume`: resume a session after a crash or a stop."""

from __future__ import annotations

import asyncio
import os

import click

from engine.process.launch import resume
from tui.commands.look.home import prepare_home
from tui.commands.opening import open_session
from tui.commands.options import session_argument
from tui.commands.trust import ask_for_trust, trust_option
from tui.diagnostics import ExitCode
from tui.print.follow import print_until_end
from tui.print.plain import interactive


@click.command(name="resume")
@session_argument
@click.option("--headless", is_flag=True, help="Print progress as lines, also in a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print each new event as one JSON line.")
@trust_option
def resume_command(session: str | None, *, headless: bool, as_json: bool, trusts: bool) -> ExitCode:
    """Resume SESSION after a crash or a stop: no finished reply is paid for again, no verdict is lost."""
    opened = open_session(session)
    home, name = opened
    prepare_home(home)
    ask_for_trust(home, name, trusts=trusts)
    past = opened.state
    resume(home, name)
    if interactive(os.environ) and not headless and not as_json:
        from tui.commands.look.cockpit import open_cockpit

        return open_cockpit(os.environ, session=name, mode="live")
    return asyncio.run(print_until_end(home, name, as_json=as_json, past=past))
