"""Commands that steer a session or one of its instances: `stop`, `pause`, `hint`, `pin`, `fork` and others."""

from __future__ import annotations

import asyncio
import math
import os
from pathlib import Path
from typing import Any

import click

from engine.plan.plan import read_kernel
from engine.process.commands import ALL_GPUS
from sessions import fold
from sessions.catalog import find_session, journal_of
from sessions.home import home_from
from tui import steering
from tui.commands.options import session_argument
from tui.deciding import login_name
from tui.diagnostics import Complaint, say

INSTANCE = click.argument("instance", default="")


@click.command(name="stop")
@session_argument
@INSTANCE
def stop_command(session: str, instance: str) -> None:
    """Stop SESSION, which `wavedeck resume` continues; or only INSTANCE (such as softmax#2), for good.

    Work in progress is cancelled. The winner of a stopped instance is still examined.
    """
    if not instance:
        name = give(session, "stop", reason=f"stopped by {login_name()}")
        say(f"{name} stops; go on with: wavedeck resume {name}")
        return
    name = give(session, "stop", instance=instance)
    say(f"{instance} of {name} stops")


@click.command(name="pause")
@session_argument
@INSTANCE
def pause_command(session: str, instance: str) -> None:
    """Pause SESSION, or only INSTANCE (such as softmax#2): what runs ends, but no call and no attempt starts."""
    name = give(session, "pause", instance=instance)
    say(f"{instance or name} is paused; let it go on with: wavedeck go {name} {instance}".rstrip())


@click.command(name="go")
@session_argument
@INSTANCE
def go_command(session: str, instance: str) -> None:
    """End the pause of INSTANCE (such as softmax#2), or all pauses of SESSION."""
    name = give(session, "go", instance=instance)
    say(f"{instance or name} goes on")


@click.command(name="hint")
@session_argument
@click.argument("instance")
@click.argument("text")
def hint_command(session: str, instance: str, text: str) -> None:
    """Give INSTANCE (such as softmax#2) of SESSION a hint: TEXT is quoted in the prompts of its next attempt."""
    name = give(session, "hint", instance=instance, text=text)
    say(f"{instance} of {name}: the next attempt gets the hint")


@click.command(name="extend")
@session_argument
@click.option("--iterations", type=int, default=0, metavar="N", help="Further attempts of each instance.")
@click.option(
    "--budget-usd", type=float, default=0.0, metavar="X", help="Added to the budget of the session."
)
def extend_command(session: str, *, iterations: int, budget_usd: float) -> None:
    """Give SESSION more iterations or a larger budget. A session that is stopped or finished goes on at once."""
    if not math.isfinite(budget_usd):
        raise Complaint("--budget-usd must be a number of US dollars above 0, such as 2.50")
    name = begin(session, "extend", iterations=iterations, budget_usd=budget_usd)
    gains = [
        f"{iterations} more attempts in each instance" if iterations else "",
        f"${budget_usd:.2f} more" if budget_usd else "",
    ]
    say(f"{name} goes on with {' and '.join(filter(None, gains))}; watch it with: wavedeck attach {name}")


@click.command(name="pin")
@session_argument
@click.argument("attempt")
def pin_command(session: str, attempt: str) -> None:
    """Choose ATTEMPT (such as softmax#2/7) of SESSION as the kernel that its instance optimizes, until the next pin."""
    name = give(session, "pin", attempt=attempt)
    say(f"{attempt} of {name} is the base of the next optimizations")


@click.command(name="ban")
@session_argument
@click.argument("attempt")
def ban_command(session: str, attempt: str) -> None:
    """Exclude ATTEMPT (such as softmax#2/7) of SESSION: its instance builds on it no more. A later pin lifts the ban."""
    name = give(session, "ban", attempt=attempt)
    say(f"{attempt} of {name} is no base any more")


@click.command(name="fork")
@session_argument
@click.argument("attempt")
@click.option("--hint", default="", metavar="TEXT", help="A hint for the first attempt after it.")
def fork_command(session: str, attempt: str, *, hint: str) -> None:
    """Add an instance to SESSION that starts from ATTEMPT (such as softmax#2/7).

    A session that is stopped or finished goes on at once.
    """
    say_added(begin(session, "fork", attempt=attempt, text=hint))


@click.command(name="edit")
@session_argument
@click.argument("attempt")
@click.argument("file", type=click.Path(path_type=Path))
def edit_command(session: str, attempt: str, file: Path) -> None:
    """Judge FILE, your edit of ATTEMPT (such as softmax#2/7) of SESSION, as an instance of one attempt.

    A session that is stopped or finished goes on at once.
    """
    say_added(begin(session, "edit", attempt=attempt, source=read_kernel(file, "the file")))


@click.command(name="measure")
@session_argument
@click.argument("attempt")
@click.option(
    "--gpu", metavar="N", help="The GPU, as the session names it. [the GPU that judged the attempt]"
)
@click.option("--all-gpus", is_flag=True, help="Every GPU of the session.")
def measure_command(session: str, attempt: str, *, gpu: str | None, all_gpus: bool) -> None:
    """Time ATTEMPT (such as softmax#2/7) of SESSION again in new processes, beside the timing baseline.

    A session that is stopped or finished goes on at once. No prompt contains the result.
    """
    if gpu is not None and all_gpus:
        raise Complaint("--gpu and --all-gpus exclude each other; give one of them")
    devices = ALL_GPUS if all_gpus else (gpu,) if gpu is not None else ()
    name = begin(session, "measure", attempt=attempt, devices=devices)
    say(f"{attempt} of {name} is timed again; watch it with: wavedeck attach {name}")


@click.command(name="gpu")
@session_argument
@click.argument("gpu")
@click.argument("action", type=click.Choice(["drain", "return"]))
def gpu_command(session: str, gpu: str, action: str) -> None:
    """Lend GPU of SESSION to others (drain), or take it back (return).

    What runs on a lent GPU finishes, and nothing more starts on it.
    """
    name = give(session, action, devices=(gpu,))
    say(f"GPU {gpu} of {name} is {'lent: what runs on it finishes' if action == 'drain' else 'used again'}")


def say_added(name: str) -> None:
    """Print the instance that was added last, and how to watch it."""
    state = fold(journal_of(home_from(os.environ), name).events)
    key = list(state.forks)[-1]
    say(f"{key} starts from {state.forks[key].base}; watch it with: wavedeck attach {name}")


def begin(session: str, command: str, **arguments: Any) -> str:
    """Give a command that brings new work, start an engine if none runs, and return the session's full name."""
    home = home_from(os.environ)
    name = find_session(home, session)
    asyncio.run(steering.begin(home, name, command, by=login_name(), **arguments))
    return name


def give(session: str, command: str, **arguments: Any) -> str:
    """Give a command in this person's name and return the session's full name."""
    home = home_from(os.environ)
    name = find_session(home, session)
    asyncio.run(steering.steer(home, name, command, by=login_name(), **arguments))
    return name
