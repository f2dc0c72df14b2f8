"""Finds the cluster and the devices that `--devices ray...` names.

ray                    every GPU of the cluster, or without any GPU the cores of every node
ray:10.0.0.1:6379      the cluster with this address
ray,node1              the devices of one node            ray,node1/0      one GPU
ray,gfx942             GPUs of this target
ray,pool=mi300         devices of nodes with this label
ray,NAME               devices of nodes with a label or resource of this name
ray,cpu                the cores of every node
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import msgspec

from harness.linux.process_environment import PROJECT_ROOT
from harness.node.discovery import CPU
from harness.wire.device import Device
from harness.wire.errors import HarnessError, UnknownDevice

from .node_facts import ClusterNodeFacts, check_wavedeck, different_versions

RAY = "ray"
LOOK_S = 150.0
"""Longest look at a cluster: every node may take a minute."""


class Look(msgspec.Struct, frozen=True):
    """A cluster as it is now."""

    address: str
    nodes: tuple[ClusterNodeFacts, ...] = ()
    error: str = ""
    """Why the cluster could not be read; empty if it could."""


class Chosen(msgspec.Struct, frozen=True):
    """The devices of a run on a cluster."""

    address: str
    devices: tuple[Device, ...]
    """Their names begin with their nodes: `node1/0`."""
    warnings: tuple[str, ...] = ()


LOOK = msgspec.json.Decoder(Look)


def is_cluster(words: Sequence[str]) -> bool:
    """True if the words of `--devices` name a cluster."""
    return bool(words) and words[0].partition(":")[0] == RAY


def look_at_cluster(address: str = "") -> Look:
    """Return the nodes of a cluster. Blocks for seconds. Raises `HarnessError` in one line."""
    # In a process of its own: Ray leaves threads behind, and prints.
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness.cluster.look", address],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=LOOK_S,
            cwd=PROJECT_ROOT,
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"the Ray cluster did not answer within {LOOK_S:g} s; see `ray status`") from None
    try:
        look = LOOK.decode(done.stdout)
    except msgspec.DecodeError:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        raise HarnessError(f"the Ray cluster could not be read: {last or 'no answer'}") from None
    if look.error:
        raise HarnessError(look.error)
    return look


def select_in_cluster(words: Sequence[str]) -> Chosen:
    """Return the devices that `--devices ray...` means. Blocks for seconds.

    Raises `UnknownDevice` for a name, target or label that no node has, `HarnessError` if a chosen node cannot judge.
    """
    look = look_at_cluster(words[0].partition(":")[2])
    return choose(look, words[1:])


def choose(look: Look, wanted: Sequence[str]) -> Chosen:
    """Return the devices of the cluster that `wanted` names, by default all. See `select_in_cluster`."""
    places = [(facts, device) for facts in look.nodes for device in facts.devices or (CPU,)]
    chosen = [place for word in wanted for place in _find(look, places, word)] if wanted else _all(places)
    nodes = list({facts.node.name: facts for facts, _ in chosen}.values())
    for facts in nodes:
        if facts.problem:
            raise HarnessError(f"node {facts.node.name} cannot judge: {facts.problem}")
    check_wavedeck({facts.node.name: facts.versions.get("wavedeck", "") for facts in nodes})
    devices = {device_name(facts, device): device for facts, device in chosen}
    return Chosen(
        look.address,
        tuple(msgspec.structs.replace(device, name=name) for name, device in devices.items()),
        tuple(different_versions({facts.node.name: facts.versions for facts in nodes})),
    )


def device_name(facts: ClusterNodeFacts, device: Device) -> str:
    """Return the name of a node's device in the cluster: `node1/0`."""
    return f"{facts.node.name}/{device.name}"


def _all(places: Sequence[tuple[ClusterNodeFacts, Device]]) -> list[tuple[ClusterNodeFacts, Device]]:
    gpus = [(facts, device) for facts, device in places if device.kind != "cpu"]
    return gpus or list(places)


def _find(
    look: Look, places: Sequence[tuple[ClusterNodeFacts, Device]], word: str
) -> list[tuple[ClusterNodeFacts, Device]]:
    """Return the places that a word of `--devices` names: `LABEL=VALUE`, `cpu`, a device, a target, a node or a label.

    Raises `UnknownDevice` if the word names nothing.
    """
    label, equals, value = word.partition("=")
    if equals:
        matches = _all([place for place in places if place[0].node.labels.get(label) == value])
    elif word == CPU.name:
        matches = [place for place in places if place[1].kind == "cpu"]
    else:
        matches = [place for place in places if device_name(*place) == word or place[1].target == word]
        matches = matches or _all(
            [place for place in places if word in (place[0].node.name, *place[0].node.labels)]
        )
    if not matches:
        raise UnknownDevice(f"no node of the cluster at {look.address} has {word!r}; it has {_offer(places)}")
    return matches


def _offer(places: Sequence[tuple[ClusterNodeFacts, Device]]) -> str:
    """Return the first devices of the cluster in words, with their targets."""
    words = [
        f"{device_name(facts, device)}{f' ({device.target})' if device.target else ''}"
        for facts, device in places
    ]
    return ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")
