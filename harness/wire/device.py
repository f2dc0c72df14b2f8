"""Devices that run candidates, and targets to compile for."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """Facts from the driver and the PCI bus that together identify a GPU's product; `None` if unknown."""

    model: str
    """The driver's name, which may be wrong ("AMD Radeon Graphics", "MI300X VF")."""
    vendor_id: int | None = None
    device_id: int | None = None
    compute_units: int | None = None
    memory_bytes: int | None = None
    partition: str = ""
    """Compute and memory partition mode (`CPX/NPS4`); empty if there is none, or if unknown."""


class Device(msgspec.Struct, frozen=True):
    """One GPU as the process sees it, or `cpu`, the interpreter."""

    name: str
    """`cpu`, or the GPU's index in `--devices`. In a cluster with the node before it: `node1/0`, `node1/cpu`."""
    kind: str
    target: str | None = None
    description: str = ""
    visibility: str = ""
    """The `VARIABLE=value` that shows a process only this GPU; empty for `cpu`, or if unknown."""
    address: str = ""
    identity: Identity | None = None
    package: str = ""
    """The first PCI address of its package, without the function; empty for `cpu`, or if unknown. Devices of one package share
    power, clocks and memory: partitions of one MI300X, or the two dies of an MI250X."""


def own_name(name: str) -> str:
    """Return the name that a device has on its own node: `0` for `node1/0`."""
    return name.rpartition("/")[2]


def is_cpu(name: str) -> bool:
    """True for the name of a device that is an interpreter, on this machine or on a node of a cluster."""
    return own_name(name) == "cpu"


def nodes_of(names: Iterable[str]) -> tuple[str, ...]:
    """Return the cluster's nodes in names of devices, each once; none for devices of this machine."""
    return tuple(dict.fromkeys(node for node, slash, _ in (name.rpartition("/") for name in names) if slash))


def devices_named(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return the device of `names` with this name, or every device of the node with this name."""
    return tuple(device for device in names if name in (device, device.rpartition("/")[0]))


class Target(msgspec.Struct, frozen=True):
    """An architecture to compile for."""

    name: str
    backend: str
    wave_size: int


VISIBILITY_VARIABLES = {
    "hip": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "cuda": ("CUDA_VISIBLE_DEVICES",),
}
"""Variables that limit the GPUs of a process, outermost first. Each list indexes the GPUs that the list before it leaves."""
