"""`wavedeck eval`: judge one kernel file."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from engine.plan.request import RunPlan
from harness import DevicePool, Evaluation, StageEvent, Verdict, choose_devices, evaluate
from harness.node.selection import ALL, IDLE, targets_for, wait_for_devices
from harness.processes.gpus.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from harness.processes.starting.judge_python import JudgePython
from harness.processes.starting.nursery import Nursery
from harness.stages.cascade import refuse_text
from harness.stages.modes import Attempt, Cases, Exam
from harness.stages.timing.baselines import KINDS, TASK, Against, Baseline, other_baseline, timing_baseline
from harness.wire.limits import SOURCE_BYTES
from sessions.home import home_from
from sessions.names import stage_word
from sessions.verifications import graph_nodes_of
from suites import Task, baseline_source
from tui.commands.keep.recording import judged_task
from tui.commands.options import (
    OwnOptions,
    complete_files,
    complete_tasks,
    json_option,
    judge_python,
    own_options,
    python_option,
    say_default_target,
    setting_options,
)
from tui.commands.own import own_task
from tui.commands.sections import Sectioned
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.verdict import FILE
from tui.print.plain import emit, emit_json, tables_text
from tui.print.waiting_line import WaitingLine

EXIT_CODES = {Verdict.CORRECT: ExitCode.DONE, Verdict.INFRA_ERROR: ExitCode.FAILED}
"""Exit codes by verdict; any other verdict is `NO`."""


@click.command(name="eval", cls=Sectioned)
@click.argument("file", shell_complete=complete_files)
@click.option(
    "--task",
    help="Task that the kernel must solve, by name or folder. [a task of its own]",
    shell_complete=complete_tasks,
)
@setting_options(
    "devices",
    "targets",
    "seed",
    seed="Seed of the inputs; the same seed gives the same verdict. [random]",
)
@click.option(
    "--against",
    metavar="WHAT",
    default=TASK,
    help="Timing baseline on a GPU: task (the task's own baseline), eager, compile, a kernel file, FILE.py:FUNCTION, PACKAGE.MODULE:FUNCTION or torch.ops.X.Y. [task]",
)
@click.option(
    "--cache",
    type=click.Choice(("cold", "hot")),
    default="cold",
    help="State of the GPU's caches during timing. [cold]",
)
@click.option("--exam", is_flag=True, help="Judge the exam cases instead of the open cases.")
@click.option(
    "--case",
    "cases",
    multiple=True,
    metavar="NAME",
    help="Judge only this open case, without hidden cases: to reproduce a failure or to profile. Repeatable.",
)
@click.option("--sustained", is_flag=True, help="Time calls on a GPU without pause too; about 4 s per case.")
@python_option
@own_options
@json_option
def eval_command(
    file: str,
    *,
    task: str | None,
    own: OwnOptions,
    against: str,
    cache: str,
    exam: bool,
    cases: tuple[str, ...],
    sustained: bool,
    python: str,
    as_json: bool,
    **flags: Any,
) -> ExitCode:
    """Judge the kernel in FILE, or from standard input if FILE is -.

    Without --task, FILE or FILE:FUNCTION becomes a task: --shapes gives its inputs, a PyTorch function in the file what is right.

    Exit code: 0 if it is correct, 1 with any other verdict, 3 if nothing could be judged. With --case, 0 only says that
    the chosen cases are correct.
    """
    configured = load(flags, environ=os.environ, folder=Path.cwd())
    settings = configured.settings
    if file == "-" and task is None:
        raise click.UsageError("missing option '--task' for standard input", ctx=click.get_current_context())
    if cases and exam:
        raise Complaint("--case judges open cases; leave --exam out")
    if task is not None and own != OwnOptions():
        raise Complaint(
            "--shapes, --reference, --tolerance, --send-only, -y and --dry-run are for a file that no task names; leave --task out"
        )
    interpreter = judge_python(python)
    registry = home_from(os.environ).suites
    with ExitStack() as stack:
        if task is None:
            if not {IDLE, ALL} & {*settings.devices}:
                choose_devices(settings.devices)  # refuses an unknown device before the task is made
            made = stack.enter_context(
                own_task(file, own, settings.targets, registry, interpreter, sends=False)
            )
            if made is None:
                return ExitCode.DONE if own.dry_run else ExitCode.NO
            loaded, source = made, baseline_source(made)
        else:
            source = read_candidate(file)  # before a recording that takes a minute
            loaded = judged_task(task, registry, devices=settings.devices, targets=settings.targets)
        if cases:
            loaded.with_cases(cases)  # refuses an unknown case before anything starts
        baseline = baseline_of(loaded, against)
    mode = Cases(cases) if cases else Exam() if exam else Attempt()
    timing = Against(baseline, cold=cache == "cold", sustained=sustained)
    drawn = secrets.randbelow(1 << 31) if settings.seed is None else settings.seed
    # The text first: an empty or broken file gets its answer before torch is loaded.
    refused = refuse_text(source, loaded, mode)
    evaluation = refused
    if evaluation is None:
        with WaitingLine("starting the judge", wanted=not as_json) as status:
            evaluation = asyncio.run(
                judged(
                    partial(evaluate, source, loaded, mode=mode, seed=drawn, against=timing),
                    settings,
                    interpreter,
                    on_stage=lambda stage: status.show(f"{loaded.short_id}: {stage}"),
                )
            )
    if as_json:
        emit_json(evaluation)
    else:
        name = FILE if file == "-" else Path(file).name
        emit(tables_text(evaluation_tables(evaluation, baseline=loaded.baseline, file=name)))
    if refused is None:
        say(f"seed {drawn}; judge these inputs again with --seed {drawn}")
        if (
            task is None
            and evaluation.error is not None
            and (wrong := evaluation.error.mismatch)
            and wrong.off
        ):
            say(
                "if such errors are right for you, allow them: --tolerance 1e-2 (of a value), 1ulp or cosine:0.999"
            )
        if evaluation.device == "cpu" and evaluation.error is not None:
            say_default_target([evaluation.error.target], settings.targets)
    return EXIT_CODES.get(evaluation.verdict, ExitCode.NO)


async def judged(
    judge: Callable[..., Coroutine[Any, Any, Evaluation]],
    settings: RunPlan,
    python: JudgePython,
    *,
    on_stage: Callable[[str], None],
) -> Evaluation:
    """Call `judge` with a new pool and its targets, on the first of the devices.

    The nursery starts beside the search for devices: both take seconds.
    """

    def on_event(event: StageEvent) -> None:
        if event.result is None:
            on_stage(stage_word(event.stage))

    async with Nursery(python) as nursery:
        opening = asyncio.create_task(nursery.open(), name="nursery")
        try:
            device = (await wait_for_devices(settings.devices, on_wait=say_busy))[0]
        finally:
            await opening
        trusted_graphs = partial(graph_nodes_of, home_from(os.environ))
        async with DevicePool(
            [device.name], slots=1, on_device=say_wait, nursery=nursery, trusted_graphs=trusted_graphs
        ) as pool:
            return await judge(pool=pool, targets=targets_for([device], settings.targets), on_event=on_event)


def baseline_of(task: Task, against: str) -> Baseline | None:
    """Return the baseline that `--against` names; `None` for the task's own baseline."""
    if against == TASK:
        return None
    if against in KINDS:
        return timing_baseline(task, against)
    return other_baseline(task, against, read_candidate)


def say_busy(busy: str) -> None:
    """Print who uses the GPUs, on standard error."""
    say(f"waits for an idle GPU ({busy}); --devices 0 shares a GPU, --devices cpu needs none")


def say_wait(event: DeviceEvent) -> None:
    """Print why the evaluation waits, on standard error."""
    match event:
        case LeaseAwaited():
            say(f"GPU {event.device}: waits, {'; '.join(map(str, event.holders))}")
        case NodeDown():
            say(f"no GPU passes its probe, next probe in {event.next_probe_s:g} s: {event.why}")
        case NodeBack():
            say(f"the GPU is back after {event.seconds:.0f} s")
        case Quarantined():
            say(f"GPU {event.device} failed: {event.why}")


def read_candidate(file: str) -> str:
    """Return the text of a kernel file. The judge decides whether it is Python."""
    shown = "standard input" if file == "-" else file
    try:
        # One byte more than the judge accepts: the judge reports a long file, and an endless file ends here.
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as source:
            data = source.read(SOURCE_BYTES + 1)
        # Python skips a byte order mark too. If the read ended inside a character, that character is dropped.
        return data.decode("utf-8-sig", "ignore" if len(data) > SOURCE_BYTES else "strict")
    except FileNotFoundError as error:
        raise Complaint(f"there is no file {shown}; give the path of one Python module") from error
    except IsADirectoryError as error:
        raise Complaint(f"{shown} is a folder; give the path of one Python module") from error
    except OSError as error:
        raise Complaint(f"{shown} cannot be read ({error.strerror}); fix its permissions") from error
    except UnicodeDecodeError as error:
        raise Complaint(
            f"{shown} is not UTF-8 text, so it is not Python; give the path of one Python module"
        ) from error
