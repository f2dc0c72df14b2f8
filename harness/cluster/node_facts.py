"""Facts of a cluster's node: its devices, and the versions that verdicts and times depend on."""

from __future__ import annotations

import functools
import hashlib
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.linux.installed import installed_version
from harness.node.discovery import CPU
from harness.node.selection import ALL, select_devices
from harness.node.telemetry.watcher import ask_once
from harness.processes.gpus.capacity import own_cores
from harness.wire.device import Device
from harness.wire.errors import HarnessError
from harness.wire.results.provenance import Provenance

_JUDGE_ROOMS = ("harness", "suites")
_ROOT = Path(__file__).resolve().parents[2]
_DIGEST_LETTERS = 12
KEPT_APART = ("torch", "triton", "driver")
"""Versions that may differ between nodes. Each figure has its node's provenance; figures with different ones are kept apart."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node as Ray shows it."""

    name: str
    id: str
    """Ray's identifier, which a restarted node does not keep."""
    cores: int
    """Cores that the node gives to Ray."""
    labels: dict[str, str] = {}
    is_alive: bool = True


class ClusterNodeFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A node that answered, or why it did not."""

    node: Node
    devices: tuple[Device, ...] = ()
    """`cpu`, then the GPUs that the node's own variables and Slurm allow."""
    cores: int = 0
    versions: dict[str, str] = {}
    """Versions of `wavedeck` (a digest), `python`, `torch`, `triton` and `driver`; a missing one is left out."""
    problem: str = ""
    """Why the node cannot judge; empty if it can."""


NODE = msgspec.msgpack.Decoder(Node)
FACTS = msgspec.msgpack.Decoder(ClusterNodeFacts)


def describe_this_node(node: Node) -> ClusterNodeFacts:
    """Return the facts of the machine that this process runs on, which Ray shows as `node`. Imports neither torch nor triton."""
    packages = ("torch", "triton")
    versions = {name: number for name in packages if (number := installed_version(name))}
    missing = [name for name in packages if name not in versions]
    versions |= {"wavedeck": judge_digest(), "python": platform.python_version()}
    problem = f"{' and '.join(missing)} not installed there" if missing else ""
    try:
        gpus = [device for device in select_devices((ALL,)) if device != CPU]
    except HarnessError as error:
        gpus, problem = [], problem or str(error)
    if gpus and (driver := ask_once(gpus[0].address, gpus[0].kind).provenance.driver):
        versions["driver"] = driver
    return ClusterNodeFacts(
        node=node, devices=(CPU, *gpus), cores=own_cores(), versions=versions, problem=problem
    )


@functools.cache
def judge_digest() -> str:
    """Return a digest of the source of the judge and of the built-in tasks, as they are in this installation."""
    digest = hashlib.sha256()
    for room in _JUDGE_ROOMS:
        for file in sorted((_ROOT / room).rglob("*")):
            if file.suffix in {".py", ".toml"} and file.is_file():
                digest.update(str(file.relative_to(_ROOT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:_DIGEST_LETTERS]


def name_nodes(nodes: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return a name of each node, by Ray's identifier: the name of `ray start --node-name`, else the host's.

    If two nodes have the same name, the first letters of their identifiers follow. Slashes, commas, equals signs and white space
    become dashes, because a device is called `NODE/0`.
    """
    wanted = {}
    for node in nodes:
        chosen, host = str(node["NodeName"]), str(node["NodeManagerHostname"])
        own = host if chosen in ("", str(node["NodeManagerAddress"])) else chosen
        wanted[str(node["NodeID"])] = re.sub(r"[\s/,=]+", "-", own.partition(".")[0] if own == host else own)
    names = list(wanted.values())
    return {node: name if names.count(name) == 1 else f"{name}-{node[:4]}" for node, name in wanted.items()}


def check_wavedeck(versions: Mapping[str, str]) -> None:
    """Raise `HarnessError` if a node's Wavedeck is different from this one. `versions` are digests by node."""
    own = judge_digest()
    different = [node for node, version in versions.items() if version != own]
    if different:
        raise HarnessError(
            f"{different[0]} has another Wavedeck ({versions[different[0]] or 'none'}, here {own}), so its verdicts could differ; "
            "install the same version on every node"
        )


def versions_of(provenance: Provenance) -> dict[str, str]:
    """Return the versions of `KEPT_APART` in a provenance; unknown ones are left out."""
    return {name: value for name in KEPT_APART if (value := getattr(provenance, name))}


def different_versions(versions: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return one line for each of `KEPT_APART` that differs between nodes; `versions` are by node."""
    lines = []
    for name in KEPT_APART:
        nodes: dict[str, list[str]] = {}
        for node, by_name in versions.items():
            if version := by_name.get(name):
                nodes.setdefault(version, []).append(node)
        if len(nodes) > 1:
            words = "; ".join(
                f"{version} on {', '.join(sorted(set(where)))}" for version, where in nodes.items()
            )
            lines.append(
                f"the nodes have different versions of {name} ({words}): their figures are kept apart"
            )
    return lines
