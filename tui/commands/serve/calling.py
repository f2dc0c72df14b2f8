"""`wavedeck mcp call eval`: the next attempt of a session of the method `agent`, for agents that only run commands."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import click

from engine.agent_programs.presets import TASK, TOKEN, URL
from engine.agents.answers import VerdictAnswer, encoded
from engine.agents.desk import AgentDesk
from engine.plan.plan import read_kernel
from engine.plan.request import RunPlan
from harness import Verdict
from sessions.home import Home
from tui.commands.opening import open_session, without_session
from tui.commands.options import complete_files, complete_tasks
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.plain import emit, emit_json


@click.group("call")
def call_command() -> None:
    """Call a tool of the judge from the shell, for an agent without MCP."""


@call_command.command("eval")
@click.argument("words", nargs=-1, required=True, metavar="[SESSION] FILE", shell_complete=complete_files)
@click.option("--task", help="Task of the kernel. [the only task]", shell_complete=complete_tasks)
@click.option("--note", default="", metavar="TEXT", help="One sentence on what the kernel changes and why.")
def eval_command(words: tuple[str, ...], *, task: str | None, note: str) -> ExitCode:
    """Judge FILE as the next attempt of SESSION.

    FILE may be -, standard input. Start SESSION with `wavedeck run TASK --method agent --detach`. The answer is JSON. An
    interrupt cancels the judging. Exit code: 0 if it is correct, 1 with any other verdict, 3 without one.
    """
    session, (file, *more) = without_session(words, 1)
    if more:
        raise Complaint(f"{more[0]!r} is too much: wavedeck mcp call eval [SESSION] FILE")
    source = sys.stdin.read() if file == "-" else read_kernel(Path(file), "FILE")
    if os.environ.get(URL):
        return propose_confined(task or os.environ[TASK], source, note)
    opened = open_session(session)
    if not opened.home.files(opened.name).running:
        raise Complaint(
            f"{opened.name} does not run; go on with wavedeck resume, or wavedeck steer extend if it is finished"
        )
    started = opened.state.started
    tasks = started.tasks if started is not None else ()
    if task is None and len(tasks) != 1:
        raise Complaint(f"the session has several tasks; name one with --task: {', '.join(tasks)}")
    answer = asyncio.run(propose(opened.home, opened.name, task or tasks[0], source, note))
    emit(encoded(answer))
    return ExitCode.DONE if answer.verdict == Verdict.CORRECT else ExitCode.NO


def propose_confined(task: str, source: str, note: str) -> ExitCode:
    """Judge the kernel of an agent that the engine started: it can only reach the server of its instance."""
    # Imported here: only this case needs the SDK.
    from tui.agents.client import propose_to

    answer = asyncio.run(propose_to(os.environ[URL], os.environ[TOKEN], task, source, note))
    emit_json(answer)
    return ExitCode.DONE if answer["verdict"] == Verdict.CORRECT else ExitCode.NO


async def propose(home: Home, session: str, task: str, source: str, note: str) -> VerdictAnswer:
    """Return the answer when the kernel is judged; `AgentRefused` if the session ends before."""
    desk = AgentDesk(home, RunPlan())
    desk.join(session, task)
    here = asyncio.current_task()
    assert here is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, here.cancel)

    async def report(words: str) -> None:
        say(words)

    try:
        answer = await desk.evaluate(task, source, note, agent="", on_progress=report)
        while not answer.judged:
            answer = await desk.wait(answer.attempt, on_progress=report)
        return answer
    except asyncio.CancelledError:
        with suppress(asyncio.CancelledError):
            await desk.settle()
        raise KeyboardInterrupt from None
