"""`wavedeck eval`: judge one kernel file."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from harness import WITH_ENERGY, DevicePool, Evaluation, Target, Verdict, evaluate
from harness.node.selection import select_devices, targets_for
from harness.processes.quarantine import DeviceEvent, LeaseAwaited, NodeBack, NodeDown, Quarantined
from harness.stages.spread import evaluate_everywhere
from harness.stages.timing.baselines import (
    KINDS,
    TASK,
    USUAL,
    Against,
    Baseline,
    kernel_baseline,
    timing_baseline,
)
from harness.wire.limits import SOURCE_BYTES
from sessions.home import home_from
from suites import Task, load_task
from tui.commands.options import complete_tasks, json_option, targets_option
from tui.config import load
from tui.diagnostics import Complaint, ExitCode, say
from tui.judgement import page
from tui.plain import emit, emit_json


@click.command(name="eval")
@click.argument("file", metavar="FILE")
@click.option("--task", required=True, help="What the kernel is to solve.", shell_complete=complete_tasks)
@click.option(
    "--device", metavar="NAME", help="Where to judge: cpu or a GPU's number. [an idle GPU, else cpu]"
)
@targets_option
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Where the inputs come from; the same seed, the same verdict. [drawn anew]",
)
@click.option(
    "--against",
    metavar="WHAT",
    default=TASK,
    help="What a GPU times it against: task (the task's own baseline), eager, compile, or a kernel file. [task]",
)
@click.option(
    "--cache",
    type=click.Choice(("cold", "hot")),
    default="cold",
    help="State of a GPU's caches when timed. [cold]",
)
@click.option(
    "--spread", is_flag=True, help="On every GPU that --device names (idle, all, 0,1), to compare them."
)
@click.option(
    "--exam",
    is_flag=True,
    help="Judge the exam cases in place of the open ones, replay every call and look for races.",
)
@json_option
def eval_command(
    file: str,
    *,
    task: str,
    device: str | None,
    targets: str | None,
    seed: int | None,
    against: str,
    cache: str,
    spread: bool,
    exam: bool,
    as_json: bool,
) -> ExitCode:
    """Judge the kernel in FILE (- is standard input).

    Exits with 0 when it is correct, 1 with any other verdict, 3 when nothing could be judged.
    """
    configured = load(
        {"devices": device, "targets": targets, "seed": seed}, environ=os.environ, folder=Path.cwd()
    )
    settings = configured.settings
    found = load_task(task, registry=home_from(os.environ).suites)
    source = read_candidate(file)
    chosen = select_devices(settings.devices)
    if exam and spread:
        raise Complaint("--exam judges on one device; leave --spread out")
    if spread and chosen[0].kind == "cpu":
        raise Complaint(
            "--spread compares GPUs, and none was chosen; name them, as --device 0,1 or --device all"
        )
    used = chosen if spread else chosen[:1]
    devices = tuple(one.name for one in used)
    compiled_for = targets_for(used, settings.targets)
    timing = Against(baseline_of(found, against), cold=cache == "cold")
    drawn = secrets.randbelow(1 << 31) if settings.seed is None else settings.seed
    evaluation = asyncio.run(
        judged(source, found, devices=devices, targets=compiled_for, seed=drawn, against=timing, exam=exam)
    )
    if as_json:
        emit_json(evaluation)
    else:
        emit(page(evaluation, baseline=found.baseline))
    say(f"seed {drawn}; judge these inputs again with --seed {drawn}")
    return exit_code(evaluation)


async def judged(
    source: str,
    task: Task,
    *,
    devices: tuple[str, ...],
    targets: Sequence[Target],
    seed: int,
    against: Against = USUAL,
    exam: bool = False,
) -> Evaluation:
    """The evaluation, on all of several devices, by a pool that is gone afterwards."""
    async with DevicePool(devices, slots=len(devices), on_device=tell) as pool:
        if len(devices) > 1:
            return await evaluate_everywhere(
                source, task, pool=pool, targets=targets, seed=seed, against=against, effort=WITH_ENERGY
            )
        return await evaluate(
            source,
            task,
            pool=pool,
            targets=targets,
            seed=seed,
            exam=exam,
            against=against,
            effort=WITH_ENERGY,
        )


def baseline_of(task: Task, against: str) -> Baseline | None:
    """What `--against` names; `None` for the task's own baseline, which need not be there on `cpu`."""
    if against == TASK:
        return None
    if against in KINDS:
        return timing_baseline(task, against)
    if not Path(against).exists():
        raise Complaint(f"--against {against}: neither one of {', '.join(KINDS)} nor a kernel file")
    return kernel_baseline(task, against, read_candidate(against))


def tell(told: DeviceEvent) -> None:
    """Why it takes longer, to the person who waits."""
    match told:
        case LeaseAwaited():
            say(f"GPU {told.device}: waits, {'; '.join(map(str, told.holders))}")
        case NodeDown():
            say(f"no GPU passes its probe, the next one in {told.next_probe_s:g} s: {told.why}")
        case NodeBack():
            say(f"the GPU is back after {told.seconds:.0f} s")
        case Quarantined():
            say(f"GPU {told.device} failed: {told.why}")


def read_candidate(file: str) -> str:
    """The text of a kernel file; whether it is Python is the judge's to say."""
    shown = "standard input" if file == "-" else file
    try:
        # One byte more than the judge takes: it says what is too long, and an endless file ends here.
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as source:
            data = source.read(SOURCE_BYTES + 1)
        # Python itself skips a byte order mark. Where the reading ended inside a character, that one is left out.
        return data.decode("utf-8-sig", "ignore" if len(data) > SOURCE_BYTES else "strict")
    except FileNotFoundError as error:
        raise Complaint(f"there is no file {shown}; give the path of one Python module") from error
    except IsADirectoryError as error:
        raise Complaint(f"{shown} is a folder; give the path of one Python module") from error
    except OSError as error:
        raise Complaint(f"{shown} cannot be read ({error.strerror}); mend its permissions") from error
    except UnicodeDecodeError as error:
        raise Complaint(
            f"{shown} is not UTF-8 text, so no Python; give the path of one Python module"
        ) from error


def exit_code(evaluation: Evaluation) -> ExitCode:
    """What the shell is told of a verdict."""
    match evaluation.verdict:
        case Verdict.CORRECT:
            return ExitCode.DONE
        case Verdict.INFRA_ERROR:
            return ExitCode.FAILED
        case _:
            return ExitCode.NO
