"""`wavedeck run`: start a session and, if wanted, watch it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import click
import msgspec

from engine.methods import METHODS
from engine.plan.plan import check_model
from engine.process.environment import detach_risks
from engine.process.keys import environment_with_keys
from engine.process.launch import EngineStart, prepare
from sessions.home import Home, home_from
from suites import public_suite_names
from tui.actions.run_plan import RECORDED, model_of, plan, shipped_price_words
from tui.commands.options import complete_tasks, targets_option
from tui.commands.watch.home import prepare_home
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.follow import print_until_end
from tui.print.plain import emit, emit_json, interactive

EPILOG = "\b\nMethods:\n" + "\n".join(f"  {name:<13}{words}" for name, words in METHODS.items())


@click.command(name="run", epilog=EPILOG)
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@click.option("--suite", help="Take every task of this suite. [starter]")
@click.option("--method", metavar="NAME", help="Method of the agents; see below. [geak]")
@click.option(
    "--model",
    metavar="P:NAME",
    help="anthropic:NAME, openai:NAME, either with @URL, azure:DEPLOYMENT, gemini:NAME or recorded:NAME; or by "
    f"role: generator=...,reflector=.... [{RECORDED}]",
)
@click.option(
    "--instances", type=int, metavar="N", help="Independent chains on each task. [4, or as recorded]"
)
@click.option("--iterations", type=int, metavar="N", help="Attempts of each chain. [10, or as recorded]")
@click.option(
    "--tune",
    is_flag=True,
    default=None,
    help="geak: also sweep the launch parameters of each correct attempt.",
)
@click.option(
    "--without", metavar="MODULES", help="Modules to switch off: knowledge,one-shot,optimizer,reflection."
)
@click.option("--workers", type=int, metavar="N", help="kernelagent: number of parallel workers. [4]")
@click.option("--descendants", type=int, metavar="N", help="geak-evolve: candidates per round. [8]")
@click.option(
    "--prompt-style", metavar="NAME", help="Prompt format of the model: chat, kernelllm or autotriton. [chat]"
)
@click.option(
    "--corpus",
    metavar="PATH",
    help="Triton kernels to use as further examples: a folder of *.py, or a JSON array.",
)
@click.option(
    "--start",
    metavar="FILE",
    help="Kernel to start from: the first attempt of each instance; tune sweeps it.",
)
@click.option(
    "--against",
    metavar="WHAT",
    help="Timing baseline on GPUs: task (the task's own baseline), eager, compile, or a kernel file. [task]",
)
@click.option(
    "--spread",
    is_flag=True,
    default=None,
    help="Measure each instance's winner on every GPU of the session, to compare them.",
)
@click.option("--devices", metavar="NAMES", help="Devices of the judge: idle, all, 0,1 or cpu. [idle]")
@targets_option
@click.option(
    "--review", metavar="HOW", help="auto, or manual: wait for a decision at each better attempt. [auto]"
)
@click.option("--budget-usd", type=float, metavar="X", help="Highest cost of the session (needs prices).")
@click.option("--budget-tokens", type=int, metavar="N", help="Highest number of tokens of the session.")
@click.option("--budget-attempts", type=int, metavar="N", help="Highest number of attempts of the session.")
@click.option(
    "--budget-device-s", type=float, metavar="X", help="Most seconds of judging on devices, in sum."
)
@click.option("--budget-wall-s", type=float, metavar="X", help="Most seconds that the session runs.")
@click.option(
    "--stop-at-speedup", type=float, metavar="X", help="On GPUs: end an instance at this speedup. [never]"
)
@click.option(
    "--stop-without-gain",
    type=int,
    metavar="N",
    help="On GPUs: end an instance after N correct attempts in a row without a gain; 0: never. [2]",
)
@click.option(
    "--allocate",
    metavar="HOW",
    help="even, or best: move iterations from solved and hopeless tasks to others. [even]",
)
@click.option("--seed", type=int, metavar="N", help="Seed of the judge's inputs. [random]")
@click.option("--title", default="", metavar="TEXT", help="Title of the session, shown in lists. [none]")
@click.option("--detach", is_flag=True, help="Start the session and return at once.")
@click.option("--headless", is_flag=True, help="Print progress as lines, also in a terminal.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="With --headless: one event per line. With --detach: one document.",
)
def run_command(
    tasks: tuple[str, ...], *, title: str, detach: bool, headless: bool, as_json: bool, **flags: Any
) -> ExitCode:
    """Start agents on TASKs and watch them: in the cockpit, or as lines without a terminal.

    Without TASKs: the tasks of the recording, or else the whole suite. Agents keep running after you quit the cockpit;
    `wavedeck attach` comes back. With lines, Ctrl-C stops the session, and `wavedeck resume` continues it.

    Defaults are in brackets. Settings come from flags, then WAVEDECK_<OPTION>, then ./wavedeck.toml, then your config.toml.
    """
    if detach and headless:
        raise Complaint("--detach and --headless exclude each other: either return at once or wait")
    lines = headless or as_json or not interactive(os.environ)
    configured = load(
        {name.replace("_", "-"): value for name, value in flags.items()},
        environ=os.environ,
        folder=Path.cwd(),
    )
    for remark in configured.remarks:
        say(remark)
    home = home_from(os.environ)
    prepare_home(home)
    model, remark = model_of(configured.settings, configured.origins, environment_with_keys())
    if remark:
        say(remark)
    requested = plan(configured.settings, tasks, model, title=title)
    public_suites = public_suite_names(registry=home.suites)
    if any(task.partition("/")[0] in public_suites for task in tasks):
        # Imported here: it needs the judge's modules.
        from tui.commands.keep.recording import record_missing

        check_model(requested, home=home, environ=environment_with_keys())
        recorded = record_missing(tasks, home.suites, devices=requested.devices, targets=requested.targets)
        requested = msgspec.structs.replace(requested, tasks=recorded)
    if words := shipped_price_words(requested):
        say(words)
    engine = prepare(requested, home)
    if not detach and not lines:
        return watched(engine)
    engine.begin_and_wait()
    if detach:
        return detached(home, engine.session, as_json=as_json)
    return asyncio.run(print_until_end(home, engine.session, as_json=as_json))


def watched(engine: EngineStart) -> ExitCode:
    """Open the cockpit while the engine starts; raises as `engine.process.launch.start` if it does not start."""
    try:
        engine.begin()
        # Imported here: the engine starts at the same time.
        from tui.commands.watch.cockpit import open_cockpit

        return open_cockpit(os.environ, session=engine.session, mode="live", engine=engine)
    except KeyboardInterrupt:
        # The person may not have seen the session's name.
        if not engine.is_done:
            engine.cancel()
        elif not engine.has_failed:
            say(f"{engine.session} goes on; come back with: wavedeck attach {engine.session}")
        raise


def detached(home: Home, session: str, *, as_json: bool) -> ExitCode:
    """Print how to come back, and what on this machine may end the engine before that."""
    if as_json:
        risks = detach_risks(home.root, environ=os.environ)
        emit_json({"session": session, "attach": f"wavedeck attach {session}", "risks": risks})
        return ExitCode.DONE
    # First of all: an interrupt from here on leaves an engine that the person knows by name.
    emit(session)
    say(f"running; come back with: wavedeck attach {session}")
    for risk in detach_risks(home.root, environ=os.environ):
        say(f"take care: {risk}")
    return ExitCode.DONE
