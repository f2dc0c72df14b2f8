"""`wavedeck recheck`: judge and time kept kernels again after a change of driver, ROCm, CUDA, torch or Triton."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from engine.judge.rechecking import SLOWER, Rechecked, RecheckResult, recheck
from engine.plan.request import RunPlan
from harness import DevicePool
from harness.node.selection import wait_for_devices
from harness.processes.starting.judge_python import JudgePython
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel, accepted_kernels
from sessions.verifications import graph_nodes_of
from suites import Task
from tui.commands.keep.recording import judged_tasks
from tui.commands.opening import open_kernels
from tui.commands.options import (
    complete_sessions,
    json_option,
    judge_python,
    python_option,
    setting_options,
)
from tui.commands.run.eval import say_busy, say_wait
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.plain import emit, emit_json
from tui.print.recheck_pages import recheck_rows, recheck_text

from .rejudge import rejudge

ACCEPTED = "accepted"
FAIL_ON = re.compile(r"slower=(\d+(?:\.\d+)?)%")


@click.command(name="recheck")
@click.argument(
    "scope",
    required=False,
    default=ACCEPTED,
    metavar="[accepted|SESSION|STUDY]",
    shell_complete=complete_sessions,
)
@click.option(
    "--attempts",
    "which",
    type=click.Choice(("all",)),
    help="Judge all attempts with a verdict and a reply, as a new session.",
)
@click.option(
    "--fail-on",
    metavar="slower=N%",
    help="Also exit with 1 if a kernel, or one of its cases, is slower by more than N %, with the whole interval.",
)
@setting_options("devices", "targets")
@python_option
@json_option
def recheck_command(
    scope: str,
    *,
    which: str | None,
    fail_on: str | None,
    python: str,
    as_json: bool,
    **flags: Any,
) -> ExitCode:
    """Judge every accepted kernel again, or the accepted and best kernels of SESSION or STUDY; no model is called.

    Shows the versions of then and now, then what broke, what got slower, and what is unchanged. Speedups are compared only on
    the same product and partition, each against the same baseline. Exit code: 1 if a kernel broke, or is slower than
    --fail-on allows; 3 if a kernel could not be judged.

    With --attempts, attempts get the verdict of today's judge in a new session, with the inputs and the timing baseline of
    SESSION, which stays as it is. The same command on the new session judges what is left, and compares again. With a STUDY
    and --json there is a line for each session. Exit code: 1 if an attempt was correct and has another verdict now; 3 if the
    judge failed.
    """
    limit = SLOWER if fail_on is None else _limit(fail_on)
    settings = load(flags, environ=os.environ, folder=Path.cwd()).settings
    if which is not None:
        if fail_on or python:
            raise Complaint("--fail-on and --python are for kernels; leave them or --attempts out")
        session = None if scope == ACCEPTED else scope
        return rejudge(session, settings=settings, as_json=as_json)
    interpreter = judge_python(python)
    kernels = _kernels(scope)
    names = dict.fromkeys(kernel.task for kernel in kernels)
    tasks = judged_tasks(
        names, home_from(os.environ).suites, devices=settings.devices, targets=settings.targets
    )
    rechecked = asyncio.run(_judge(kernels, tasks, settings, limit, interpreter))
    if as_json:
        emit_json(recheck_rows(rechecked))
    else:
        emit(recheck_text(rechecked))
    results = {done.result for done in rechecked}
    if RecheckResult.BROKE in results or (fail_on is not None and RecheckResult.SLOWER in results):
        return ExitCode.NO
    return ExitCode.FAILED if RecheckResult.NOT_JUDGED in results else ExitCode.DONE


def _limit(fail_on: str) -> float:
    match = FAIL_ON.fullmatch(fail_on.replace(" ", ""))
    if match is None or not 0 < float(match[1]) < 100:
        raise Complaint(f"--fail-on {fail_on}: write how much slower is too slow, as slower=3%")
    return float(match[1]) / 100


def _kernels(scope: str) -> list[KeptKernel]:
    if scope != ACCEPTED:
        return open_kernels(scope)
    kernels = accepted_kernels(home_from(os.environ))
    if not kernels:
        raise Complaint(
            "no kernel is accepted; name a session, or accept one with: wavedeck accept SESSION ATTEMPT"
        )
    return kernels


async def _judge(
    kernels: Sequence[KeptKernel],
    tasks: dict[str, Task | str],
    settings: RunPlan,
    limit: float,
    python: JudgePython,
) -> list[Rechecked]:
    done = 0

    def report(rechecked: Rechecked) -> None:
        nonlocal done
        done += 1
        say(f"{done} of {len(kernels)}: {rechecked.kernel.attempt}: {rechecked.result}")

    device = (await wait_for_devices(settings.devices, on_wait=say_busy))[0]
    trusted_graphs = partial(graph_nodes_of, home_from(os.environ))
    async with DevicePool(
        [device.name], on_device=say_wait, python=python, trusted_graphs=trusted_graphs
    ) as pool:
        return await recheck(kernels, tasks, pool, targets=settings.targets, limit=limit, on_done=report)
