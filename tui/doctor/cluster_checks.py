"""Sections of `doctor --devices ray`: the cluster, and each node with its devices and versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import HarnessError
from harness.cluster.choice import Look, choose, device_name, look_at_cluster
from harness.cluster.node_facts import KEPT_APART, NodeFacts, judge_digest
from tui.facts.vocabulary import counted

from .doctor_findings import DoctorFinding, DoctorSection, ok, warning

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


def _node(facts: NodeFacts, look: Look) -> Iterator[DoctorFinding]:
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
