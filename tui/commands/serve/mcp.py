"""`wavedeck mcp`: an MCP server by which an agent that is not Wavedeck's own sends kernels to the judge."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
from typing import Any

import click

from engine.agent_programs.presets import TOKEN
from engine.agents.desk import AgentDesk
from engine.plan.request import RunPlan
from sessions.files import write_whole
from sessions.home import Home, home_from
from sessions.names import full_task, split_instance
from sessions.settings import AGENT
from suites import load_task
from tui.commands.look.home import prepare_home
from tui.commands.options import complete_tasks, setting_options
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.plain import emit

from .calling import call_command

EVALUATIONS = 50


class ServesByDefault(click.Group):
    """A group that runs its subcommand `serve` if none is named, as in configurations of agents."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add `serve` if no subcommand is named."""
        return super().parse_args(ctx, args if args[:1] in (["call"], ["serve"]) else ["serve", *args])


HELP = "Serve the judge to your own agent, by MCP. Without a subcommand: `mcp serve`."
mcp_command = ServesByDefault("mcp", commands={"call": call_command}, help=HELP)


@mcp_command.command("serve")
@click.argument("tasks", nargs=-1, shell_complete=complete_tasks)
@setting_options(
    "iterations",
    "devices",
    "targets",
    "budget-device-s",
    "budget-wall-s",
    "seed",
    iterations=f"Evaluations of each session. [{EVALUATIONS}]",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve HTTP on 127.0.0.1; 0: a free port.",
)
@click.option("--session", hidden=True, help="Serve only an instance of this session; engines use it.")
@click.option("--instance", default="", hidden=True, help="With --session: the instance.")
@click.option("--engine", type=int, default=0, hidden=True, help="With --session: process of the engine.")
def serve_command(
    tasks: tuple[str, ...], *, port: int | None, session: str | None, instance: str, engine: int, **flags: Any
) -> ExitCode:
    """Serve the judge by MCP, on standard input and output.

    The agent may work on TASKs; without TASKs, on every task. Its first kernel for a task starts a session; `wavedeck attach`
    shows it. When the agent submits or leaves, the best attempt is examined and the session ends. docs/agents.md has the
    configuration of agents.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Complaint("the MCP SDK is not installed; pip install 'wavedeck[mcp]'")
    home = home_from(os.environ)
    if session is not None:
        asyncio.run(serve_instance(home, session, instance, engine, port or 0, os.environ.pop(TOKEN)))
        return ExitCode.DONE
    settings = load(
        flags,
        environ=os.environ,
        folder=home.root,  # not the current folder: the agent can write there
    ).settings
    prepare_home(home)
    for task in tasks:
        load_task(task, registry=home.suites)
    values = {name: getattr(settings, name) for name in flags}
    if flags["iterations"] is None:
        values["iterations"] = EVALUATIONS
    plan = RunPlan(method=AGENT, **values)
    desk = AgentDesk(home, plan, tuple(map(full_task, tasks)))
    # Imported here: only this command needs the SDK.
    from tui.agents.server import serve_http, serve_stdio

    if port is None:
        asyncio.run(serve_stdio(desk))
        return ExitCode.DONE
    file = home.root / "mcp-token"
    token = os.environ[TOKEN] = secrets.token_urlsafe(32)  # engines that the server starts mask it
    write_whole(file, token.encode() + b"\n", mode=0o600)

    def announce(address: str) -> None:
        say(f"serving {address}; the bearer token for the agent is in {file}")

    asyncio.run(serve_http(desk, port, token, announce))
    return ExitCode.DONE


async def serve_instance(home: Home, session: str, instance: str, engine: int, port: int, token: str) -> None:
    """Serve one instance of a session over HTTP for as long as its engine runs; prints the address."""
    from tui.agents.server import serve_http

    name = split_instance(instance)
    desk = AgentDesk(home, RunPlan(), (name.task,))
    desk.join(session, name.task, name.number)
    serving = asyncio.create_task(serve_http(desk, port, token, emit))
    # Not for as long as the session runs: after a crash, another engine may resume it at once with a server of its own.
    while not serving.done() and os.getppid() == engine:  # noqa: ASYNC110  # the death of a parent has no event
        await asyncio.sleep(1)
    os._exit(0)
