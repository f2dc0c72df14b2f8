"""`wavedeck run`: start a session and, if wanted, watch it."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import click
import msgspec

from engine.keys import environment_with_keys
from engine.methods import METHODS, open_method
from engine.plan.plan import can_record, check_model
from engine.plan.request import RunPlan
from engine.plan.settings import SETTINGS
from engine.process.environment import detach_risks
from engine.process.launch import EngineStart, prepare
from sessions.home import Home, home_from
from suites import Task, find_name, public_suite_names
from suites.own.entry import KernelFile
from suites.own.request import is_kernel_file
from tui.actions.run_plan import from_own_kernel, model_of, shipped_price_words
from tui.commands.look.home import prepare_home
from tui.commands.options import (
    OwnOptions,
    complete_tasks_and_files,
    judge_python,
    own_options,
    python_option,
    setting_options,
)
from tui.commands.sections import Sectioned
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.follow import print_until_end
from tui.print.plain import emit, emit_json, interactive

RECORDED_PREFIX = "recorded:"
EPILOG = "\b\nMethods:\n" + "\n".join(f"  {name:<13}{words}" for name, words in METHODS.items())


@click.command(name="run", cls=Sectioned, epilog=EPILOG)
@click.argument("tasks", nargs=-1, metavar="[TASK|FILE]...", shell_complete=complete_tasks_and_files)
@setting_options(*SETTINGS)
@python_option
@own_options
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
    tasks: tuple[str, ...],
    *,
    python: str,
    title: str,
    detach: bool,
    headless: bool,
    as_json: bool,
    own: OwnOptions,
    **flags: Any,
) -> ExitCode:
    """Start agents on TASKs and watch them: in the cockpit, or as lines without a terminal.

    A TASK is a name, or a folder in a suite. It may also be a kernel file, FILE.py or FILE.py:FUNCTION: --shapes gives its
    inputs, a PyTorch function in the file what is right, and the kernel itself is the first attempt.

    Without TASKs: the tasks of the recording, or else the whole suite. Agents keep running after you quit the cockpit;
    `wavedeck attach` comes back. With lines, Ctrl-C stops the session, and `wavedeck resume` continues it.
    """
    if detach and headless:
        raise Complaint("--detach and --headless exclude each other: either return at once or wait")
    has_file = any(map(is_kernel_file, tasks))
    if own != OwnOptions() and not has_file:
        raise Complaint(
            "--shapes, --reference, --tolerance, --send-only, -y and --dry-run are for a kernel file: wavedeck run FILE.py"
        )
    if has_file:
        if len(tasks) > 1:
            raise Complaint(f"a run takes one kernel file, or tasks by name; not {', '.join(tasks)} together")
        KernelFile.named(tasks[0])  # before words about a model
    lines = headless or as_json or not interactive(os.environ)
    configured = load(flags, environ=os.environ, folder=Path.cwd())
    for remark in configured.remarks:
        say(remark)
    home = home_from(os.environ)
    prepare_home(home)
    model, remark = model_of(configured.settings, configured.origins, environment_with_keys())
    settings = configured.settings
    if remark and has_file and settings.model:  # recordings have no replies for a file
        say(remark)
    with ExitStack() as stack:
        if has_file:
            made = stack.enter_context(task_of_file(tasks, own, settings, model, home, python))
            if made is None:
                return ExitCode.DONE if own.dry_run else ExitCode.NO
            tasks = (made.id,)
        tasks = tuple(find_name(task, registry=home.suites) for task in tasks)
        settings = from_own_kernel(settings, tasks, home.suites)
        requested = msgspec.structs.replace(settings, tasks=tasks, model=model, title=title, python=python)
        public_suites = public_suite_names(registry=home.suites)
        if any(task.partition("/")[0] in public_suites for task in tasks):
            # Imported here: it needs the judge's modules.
            from tui.commands.keep.recording import find_unrecorded, record_missing

            check_model(requested, home=home, environ=environment_with_keys())
            if can_record(requested):
                named = find_unrecorded(tasks, home.suites, devices=requested.devices)
            else:
                named = record_missing(
                    tasks, home.suites, devices=requested.devices, targets=requested.targets
                )
            requested = msgspec.structs.replace(
                requested, tasks=named.ready, to_record=named.unrecorded, left_out=named.left_out
            )
        engine = prepare(requested, home)
        for words in (remark if not has_file else "", shipped_price_words(requested)):
            if words:
                say(words)
    if not detach and not lines:
        return watched(engine)
    engine.begin_and_wait()
    if detach:
        return detached(home, engine.session, as_json=as_json)
    return asyncio.run(print_until_end(home, engine.session, as_json=as_json))


def task_of_file(
    tasks: tuple[str, ...], own: OwnOptions, settings: RunPlan, model: str, home: Home, python: str
) -> AbstractContextManager[Task | None]:
    """Give the task of the kernel file that a run names; `None` if the person does not want it.

    Everything that could refuse the run is checked before the file becomes a task.
    """
    if not own.dry_run:  # the page alone needs no model
        if model.startswith(RECORDED_PREFIX):
            raise Complaint(
                f"{model} has replies for its own tasks only; name the model for {tasks[0]} with --model, or use --method tune"
            )
        check_model(
            msgspec.structs.replace(settings, model=model), home=home, environ=environment_with_keys()
        )
    # Imported here: it needs the judge's modules.
    from tui.commands.own import own_task

    sends = open_method(settings.method).asks_model
    return own_task(tasks[0], own, settings.targets, home.suites, judge_python(python), sends=sends)


def watched(engine: EngineStart) -> ExitCode:
    """Open the cockpit while the engine starts; raises as `engine.process.launch.start` if it does not start."""
    try:
        engine.begin()
        # Imported here: the engine starts at the same time.
        from tui.commands.look.cockpit import open_cockpit

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
