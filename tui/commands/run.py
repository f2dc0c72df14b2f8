"""`wavedeck run`: start a session, and watch it or not."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from engine.environment import detach_risks
from engine.launch import start
from engine.methods import METHODS, open_method
from engine.models.access import PROVIDERS
from engine.plan import RunPlan
from sessions.events import MethodOptions
from sessions.home import Home, home_from
from tui.commands.ending import tell_until_end
from tui.commands.options import complete_tasks, targets_option
from tui.config import Settings, load
from tui.diagnostics import Complaint, ExitCode, say
from tui.plain import emit, emit_json, interactive

RECORDED = "recorded:starter"


EPILOG = "\b\nMethods:\n" + "\n".join(f"  {name:<13}{words}" for name, words in METHODS.items())


@click.command(name="run", epilog=EPILOG)
@click.argument("tasks", nargs=-1, metavar="[TASK]...", shell_complete=complete_tasks)
@click.option("--suite", help="Take every task of this suite. [starter]")
@click.option("--method", metavar="NAME", help="How attempts are made; see below. [geak]")
@click.option(
    "--model",
    metavar="P:NAME",
    help="anthropic:NAME, openai:NAME, either with @URL, azure:DEPLOYMENT, gemini:NAME or recorded:NAME; by role "
    f"as generator=...,reflector=.... [{RECORDED}]",
)
@click.option(
    "--instances", type=int, metavar="N", help="Independent chains on each task. [4, or what is recorded]"
)
@click.option("--iterations", type=int, metavar="N", help="Attempts of each chain. [10, or what is recorded]")
@click.option(
    "--tune",
    is_flag=True,
    default=None,
    help="geak: sweep the launch parameters of each correct attempt too.",
)
@click.option("--without", metavar="MODULES", help="Switch off, of knowledge,one-shot,optimizer,reflection.")
@click.option("--workers", type=int, metavar="N", help="kernelagent: workers side by side. [4]")
@click.option("--descendants", type=int, metavar="N", help="geak-evolve: candidates of a round. [8]")
@click.option(
    "--profile", metavar="NAME", help="Prompt format of the model: chat, kernelllm or autotriton. [chat]"
)
@click.option("--corpus", metavar="FOLDER", help="Triton kernels that may be shown as examples, too.")
@click.option("--start", metavar="FILE", help="tune: the kernel to sweep. [the task's timing baseline]")
@click.option(
    "--against",
    metavar="WHAT",
    help="What GPUs time candidates against: task (the task's own baseline), eager, compile, or a kernel file. [task]",
)
@click.option(
    "--spread",
    is_flag=True,
    default=None,
    help="Measure each instance's winner on every GPU of the session, to compare them.",
)
@click.option("--devices", metavar="NAMES", help="Where to judge: idle, all, 0,1 or cpu. [idle]")
@targets_option
@click.option("--review", metavar="HOW", help="auto, or manual: build on accepted attempts alone. [auto]")
@click.option(
    "--budget-usd", type=float, metavar="X", help="Make no more calls once this much is spent (needs prices)."
)
@click.option(
    "--budget-tokens", type=int, metavar="N", help="Make no more calls once this many tokens are used."
)
@click.option("--seed", type=int, metavar="N", help="Where the judge's inputs come from. [drawn anew]")
@click.option("--detach", is_flag=True, help="Start it and come back at once.")
@click.option("--headless", is_flag=True, help="Tell its progress in lines, also in a terminal.")
@click.option(
    "--json", "as_json", is_flag=True, help="With --headless one event a line; with --detach one document."
)
def run_command(
    tasks: tuple[str, ...], *, detach: bool, headless: bool, as_json: bool, **flags: Any
) -> ExitCode:
    """Start agents on TASKs and watch them: in the cockpit, or in lines where there is no terminal.

    Without tasks it takes those that the recording holds, or else the whole suite. Quitting the cockpit leaves the agents
    running; `wavedeck attach` comes back. In lines, Ctrl-C stops the session, and `wavedeck resume` goes on with it.

    Defaults stand in brackets; settings come from flags, then WAVEDECK_<OPTION>, then ./wavedeck.toml, then your config.toml.
    """
    if detach and headless:
        raise Complaint("--detach and --headless exclude each other: choose to come back at once or to wait")
    lines = headless or as_json or not interactive(os.environ)
    configured = load(
        {name.replace("_", "-"): value for name, value in flags.items()},
        environ=os.environ,
        folder=Path.cwd(),
    )
    for remark in configured.remarks:
        say(remark)
    home = home_from(os.environ)
    home.ensure()
    model = model_of(configured.settings, configured.origins, os.environ)
    session = start(plan(configured.settings, tasks, model), home)
    if detach:
        return detached(home, session, as_json=as_json)
    if not lines:
        from tui.commands.cockpit import open_cockpit

        return open_cockpit(os.environ, session=session, mode="live")
    return asyncio.run(tell_until_end(home, session, as_json=as_json))


def plan(settings: Settings, tasks: tuple[str, ...], model: str) -> RunPlan:
    """What is asked for, as the engine takes it."""
    return RunPlan(
        model=model,
        tasks=tasks,
        suite=settings.suite,
        method=settings.method,
        instances=settings.instances,
        iterations=settings.iterations,
        devices=settings.devices,
        targets=settings.targets,
        review=settings.review,
        budget_usd=settings.budget_usd,
        budget_tokens=settings.budget_tokens,
        seed=settings.seed,
        prices=settings.prices,
        limits=settings.limits,
        against=settings.against,
        spread=settings.spread,
        options=MethodOptions(
            without=settings.without,
            tune=settings.tune,
            start=settings.start,
            workers=settings.workers,
            descendants=settings.descendants,
            profile=settings.profile,
            corpus=settings.corpus,
        ),
    )


def model_of(settings: Settings, origins: Mapping[str, str], environ: Mapping[str, str]) -> str:
    """The model that was asked for, none for a method without; the shipped recording where none was, whatever keys there are: nothing is spent unasked."""
    if not open_method(settings.method).asks_model:
        return settings.model or "" if origins.get("model", "").startswith("--") else ""
    if settings.model is not None:
        origin = origins["model"]
        if not origin.startswith("--"):
            say(f"model {settings.model}, from {origin}")
        return settings.model
    keys = [
        provider.key_variable
        for provider in PROVIDERS.values()
        if environ.get(provider.key_variable, "").strip()
    ]
    names = " or ".join(
        f"--model {name}:NAME" for name, each in PROVIDERS.items() if each.key_variable in keys
    )
    hint = f"; {' and '.join(keys)} set: {names} asks a real one" if keys else ""
    say(f"no --model given: playing {RECORDED}, recorded replies of a real model, at no cost{hint}")
    return RECORDED


def detached(home: Home, session: str, *, as_json: bool) -> ExitCode:
    """Tell how to come back, and what on this machine might end the engine before that."""
    risks = detach_risks(home.root, environ=os.environ)
    if as_json:
        emit_json({"session": session, "attach": f"wavedeck attach {session}", "risks": risks})
        return ExitCode.DONE
    emit(session)
    say(f"running; come back with: wavedeck attach {session}")
    for risk in risks:
        say(f"take care: {risk}")
    return ExitCode.DONE
