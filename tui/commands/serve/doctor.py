"""`wavedeck doctor`: check this machine, verify its GPUs, or repair the store."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import click

from engine.keys import environment_with_keys
from harness import HarnessError
from harness.cluster.choice import Look, choose, device_name, is_cluster, look_at_cluster
from harness.cluster.node_facts import KEPT_APART, ClusterNodeFacts, judge_digest
from sessions.home import home_from
from tui.commands.options import json_option, judge_python, python_option
from tui.diagnostics import Complaint, ExitCode, one_line
from tui.doctor.doctor_findings import DoctorFinding, DoctorSection, ok, page, tally, warning
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
        raise Complaint("--repair is used alone; leave --json and --verify-gpu out")
    cluster = device.split(",") if device is not None and is_cluster(device.split(",")) else []
    if device is not None and bool(cluster) == verifies:
        raise Complaint("--devices needs --verify-gpu, and --devices ray is used without it")
    if python and (repair or cluster):
        raise Complaint("--python is for the judge of this machine; leave --repair and --devices out")
    if repair:
        return repair_store()
    interpreter = judge_python(python)
    if verifies:
        from tui.doctor.verify_gpu.command import verify_gpus

        return verify_gpus(device or "idle", interpreter, as_json=as_json)
    examined = examine_cluster(cluster) if cluster else examine(environment_with_keys(), interpreter)
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
    home.session_folders()
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


NAMES = {"wavedeck": "Wavedeck", "python": "Python", "torch": "torch", "triton": "Triton", "driver": "driver"}


def examine_cluster(words: Sequence[str]) -> Iterator[DoctorSection]:
    """Yield the section of the cluster, then one of each node."""
    try:
        look = look_at_cluster(words[0].partition(":")[2])
    except HarnessError as error:
        yield DoctorSection("cluster", (warning("Ray", str(error), "nothing can be judged on it"),))
        return
    yield DoctorSection("cluster", tuple(_cluster(look, words)))
    for facts in look.nodes:
        yield DoctorSection(f"node {facts.node.name}", tuple(_node(facts, look)))


def _cluster(look: Look, words: Sequence[str]) -> Iterator[DoctorFinding]:
    yield ok("Ray", f"{counted(len(look.nodes), 'node')} at {look.address}")
    try:
        chosen = choose(look, words[1:])
    except HarnessError as error:
        yield warning("devices", str(error), "a run with these --devices does not start")
        return
    yield ok(
        "devices",
        ", ".join(device.name for device in chosen.devices),
        f"--devices {','.join(words)} means them",
    )
    for line in chosen.warnings:
        yield warning("versions", line)


def _node(facts: ClusterNodeFacts, look: Look) -> Iterator[DoctorFinding]:
    if facts.problem:
        yield warning("judge", facts.problem, "this node cannot judge")
    for device in facts.devices:
        cores = f", {facts.node.cores} of {facts.cores} cores given to Ray" if device.kind == "cpu" else ""
        target = f", {device.target}" if device.target else ""
        yield ok(device_name(facts, device), f"{device.description}{target}{cores}")
    for key, name in NAMES.items():
        version = facts.versions.get(key, "")
        versions = {node.versions.get(key, "") for node in look.nodes}
        if key == "wavedeck" and version and version != judge_digest():
            yield warning(name, f"{version}, here {judge_digest()}", "install the same version on every node")
        elif version:
            differs = key in KEPT_APART and len(versions - {""}) > 1
            follows = "other nodes have another version: their figures are kept apart" if differs else ""
            yield (warning if differs else ok)(name, version, follows)
