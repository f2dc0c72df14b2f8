"""`wavedeck mcp`: an MCP server, by which an agent that is not Wavedeck's own sends kernels to the judge."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import secrets
from typing import Any

import click

from engine.agents.desk import Desk, DeskRules
from engine.plan.plan import RunPlan
from sessions.files import write_whole
from sessions.home import home_from
from sessions.names import full_task
from sessions.settings import AGENT
from suites import load_task
from tui.commands.options import complete_tasks, setting_options
from tui.commands.watch.home import prepare_home
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say

EVALUATIONS = 50


@click.command(name="mcp")
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
@click.option("--http", "port", type=click.IntRange(1, 65535), metavar="PORT", help="Serve HTTP on loopback.")
def mcp_command(tasks: tuple[str, ...], *, port: int | None, **flags: Any) -> ExitCode:
    """Serve the judge to your own agent by MCP: on standard input and output, or with --http on 127.0.0.1.

    The agent may work on TASKs; without TASKs, on every task. Its first kernel for a task starts a session, which you watch and
    steer as any other: `wavedeck attach`. When the agent submits or leaves, the best attempt is examined and the session ends.
    docs/agents.md shows how to point Claude Code, Codex, Gemini CLI and OpenHands at it.
    """
    if importlib.util.find_spec("mcp") is None:
        raise Complaint("the MCP SDK is not installed; pip install 'wavedeck[mcp]'")
    home = home_from(os.environ)
    settings = load(
        {name.replace("_", "-"): value for name, value in flags.items()},
        environ=os.environ,
        folder=home.root,  # not the current folder: the agent can write there
    ).settings
    prepare_home(home)
    for task in tasks:
        load_task(task, registry=home.suites)
    plan = RunPlan(
        method=AGENT,
        iterations=EVALUATIONS if flags["iterations"] is None else settings.iterations,
        devices=settings.devices,
        targets=settings.targets,
        budget_device_s=settings.budget_device_s,
        budget_wall_s=settings.budget_wall_s,
        seed=settings.seed,
    )
    desk = Desk(home, DeskRules(tasks=tuple(map(full_task, tasks)), plan=plan))
    # Imported here: only this command needs the SDK.
    from tui.agents.server import HOST, serve_http, serve_stdio

    if port is None:
        asyncio.run(serve_stdio(desk))
        return ExitCode.DONE
    token = home.root / "mcp-token"
    if not token.exists():
        write_whole(token, secrets.token_urlsafe(32).encode() + b"\n", mode=0o600)
    say(f"serving http://{HOST}:{port}/mcp; the bearer token for the agent is in {token}")
    asyncio.run(serve_http(desk, port, token.read_text().strip()))
    return ExitCode.DONE
