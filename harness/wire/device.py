"""Devices that run candidates, and targets to compile for."""

from __future__ import annotations

import msgspec


class Identity(msgspec.Struct, frozen=True):
    """What the driver and the PCI bus tell of a GPU: its product follows from all of it. What they do not tell is `None`."""

    model: str
    """As the driver names it; names lie ("AMD Radeon Graphics", "MI300X VF")."""
    vendor_id: int | None = None
    device_id: int | None = None
    compute_units: int | None = None
    """Compute units or multiprocessors of this device, or of the partition that it is."""
    memory_bytes: int | None = None
    partition: str = ""
    """Compute and memory partition mode (`CPX/NPS4`); empty where there is none, or it is not told."""


class Device(msgspec.Struct, frozen=True):
    """One GPU as the process sees it, or `cpu`: the interpreter."""

    name: str
    """`cpu`, or the GPU's index as people type it."""
    kind: str
    """`cpu`, `hip` or `cuda`."""
    target: str | None = None
    """Its own architecture; `None` for `cpu`."""
    description: str = ""
    visibility: str = ""
    """`VARIABLE=value` that shows a process this GPU and no other; empty for `cpu`, and where nobody could tell."""
    address: str = ""
    """Its place on the PCI bus, as `0000:c1:00.0`."""
    identity: Identity | None = None
    """`None` for `cpu`."""
    package: str = ""
    """What it shares power, clocks and memory with others by: the first PCI address of its package, without the function.
    Partitions of one MI300X and the two dies of an MI250X have the same; empty for `cpu`, and where nobody could tell."""


class Target(msgspec.Struct, frozen=True):
    """An architecture to compile for."""

    name: str
    """`gfx942`, `gfx90a`, `gfx950`, `sm_90`, ..."""
    backend: str
    """`hip` or `cuda`."""
    wave_size: int
    """Lanes of a wavefront or warp."""


VISIBILITY_VARIABLES = {
    "hip": ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
    "cuda": ("CUDA_VISIBLE_DEVICES",),
}
"""What limits the GPUs that a process sees, outermost first: each list counts in what the one before leaves."""
