"""`wavedeck hint`: commands that steer the instances of a session."""

from __future__ import annotations

import asyncio
import os

import click

from sessions.catalog import find_session
from sessions.home import home_from
from tui.commands.options import session_argument
from tui.deciding import login_name
from tui.diagnostics import say
from tui.steering import steer


@click.command(name="hint")
@session_argument
@click.argument("instance")
@click.argument("text")
def hint_command(session: str, instance: str, text: str) -> None:
    """Give INSTANCE (such as softmax#2) of SESSION a hint: TEXT is quoted in the prompts of its next attempt."""
    name = give(session, "hint", instance=instance, text=text)
    say(f"{instance} of {name}: the next attempt gets the hint")


def give(session: str, command: str, **arguments: str) -> str:
    """Give a command in this person's name and return the session's full name."""
    home = home_from(os.environ)
    name = find_session(home, session)
    asyncio.run(steer(home, name, command, by=login_name(), **arguments))
    return name
