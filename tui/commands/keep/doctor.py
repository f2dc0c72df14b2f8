"""`wavedeck doctor`: check this machine, verify its GPUs, or repair the store."""

from __future__ import annotations

import os

import click

from engine.keys import environment_with_keys
from harness.cluster.choice import is_cluster
from sessions.home import home_from
from tui.commands.options import json_option, judge_python, python_option
from tui.diagnostics import Complaint, ExitCode, one_line
from tui.doctor.cluster_checks import examine_cluster
from tui.doctor.doctor_findings import page, tally
from tui.doctor.examination import examine
from tui.facts.vocabulary import counted
from tui.print.plain import emit, emit_json


@click.command(name="doctor")
@click.option(
    "--repair",
    is_flag=True,
    help="Instead: repair the store of the sessions. Says each step first, and deletes nothing.",
)
@click.option(
    "--verify-gpu",
    "verifies",
    is_flag=True,
    help="Instead: show in at most ten minutes that the judge works on this machine's GPUs. Writes one file to send.",
)
@click.option(
    "--device",
    "--devices",
    "device",
    metavar="NAMES",
    help="GPUs of --verify-gpu, as idle, all or 0,1. [idle] With ray or ray:ADDRESS, instead: check each node of a cluster.",
    default=None,
)
@python_option
@json_option
def doctor_command(
    *, repair: bool, verifies: bool, device: str | None, python: str, as_json: bool
) -> ExitCode:
    """Check what this machine can run: GPUs, judge, sandbox, keys, store, terminal.

    Exits with 0 whatever it finds; with --repair, 3 if a damage is left; with --verify-gpu, 1 if a GPU is not verified.
    Keys are shown by name, never by value.
    """
    if repair and (as_json or verifies):
        raise Complaint("--repair stands alone; leave --json and --verify-gpu out")
    cluster = device.split(",") if device is not None and is_cluster(device.split(",")) else []
    if device is not None and bool(cluster) == verifies:
        raise Complaint("--device needs --verify-gpu, but --device ray stands without it")
    if python and not verifies:
        raise Complaint("--python needs --verify-gpu")
    if repair:
        return repair_store()
    if verifies:
        from tui.doctor.verify_gpu.command import verify_gpus

        return verify_gpus(device or "idle", judge_python(python), as_json=as_json)
    examined = examine_cluster(cluster) if cluster else examine(environment_with_keys())
    if as_json:
        emit_json({"schema": 1, "sections": list(examined)})
        return ExitCode.DONE
    sections = []
    for section in examined:
        emit(page(section) + "\n")
        sections.append(section)
    emit(tally(sections))
    return ExitCode.DONE


def repair_store() -> ExitCode:
    """Print each damage of the home's store and what will be done, then do it."""
    # Imported here: they need git.
    from sessions.errors import SessionsError
    from sessions.repairs import repairs

    home = home_from(os.environ)
    home.live_sessions()
    damages = remaining = 0
    for repair in repairs(home):
        damages += 1
        emit(one_line(repair.damage))
        if repair.act is None:
            remaining += 1
            emit(f"  cannot be repaired here: {one_line(repair.remedy)}")
            continue
        emit(f"  will {one_line(repair.remedy)}")
        try:
            repair.act()
        except (SessionsError, OSError) as error:
            remaining += 1
            emit(f"  failed: {one_line(str(error))}")
        else:
            emit("  done")
    emit(f"{counted(damages, 'damage')}, {remaining} left" if damages else f"no damage in {home.store}")
    return ExitCode.FAILED if remaining else ExitCode.DONE
