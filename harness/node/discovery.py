"""The devices of this machine: `cpu`, and the GPUs that a worker would see. No torch.

The drivers' libraries answer in a process of their own, once; files of the kernel drivers answer if the libraries do not.
"""

from __future__ import annotations

import difflib
import functools
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from harness.hardware.targets import targets
from harness.linux.process_environment import PROJECT_ROOT
from harness.wire.device import VISIBILITY_VARIABLES, Device, Identity
from harness.wire.errors import UnknownDevice
from harness.wire.limits import memory_words

from . import drivers
from .drivers import (
    FOUND,
    DriverGpu,
    amd_address,
    amd_gpus,
    pci_folder,
    pci_slot,
    read_number,
    read_properties,
    read_text,
)

CPU = Device(name="cpu", kind="cpu", description="Triton's interpreter")
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
_DRIVER_NODES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
_ASK_S = 30.0
_TWO_DIES = (0x7408, 0x740C)
"""PCI ids of the dies of an MI250X and an MI250 (`amdgpu_drv.c`). An MI210, 0x740f, has one die."""
_XGMI = 11
"""`CRAT_IOLINK_TYPE_XGMI` of `kfd_crat.h`."""


def discover_devices() -> tuple[Device, ...]:
    """Return `cpu` and the GPUs that a worker would see, numbered as the worker numbers them."""
    if any(node.exists() for node in _DRIVER_NODES) and (gpus := _ask_drivers()):
        return (CPU, *(device(gpu, number) for number, gpu in enumerate(gpus)))
    gpus_without_runtime = enumerate([*_amd_devices(), *_nvidia_devices()])
    return (CPU, *(msgspec.structs.replace(gpu, name=str(number)) for number, gpu in gpus_without_runtime))


def choose_devices(names: Sequence[str]) -> tuple[Device, ...]:
    """Return the devices of these names; `UnknownDevice` if one is not here, or is a GPU whose runtime does not answer."""
    if not names:
        raise UnknownDevice("no device is named; use cpu")
    devices = {device.name: device for device in discover_devices()}
    known_targets = {target.name for target in targets()}
    for name in names:
        if name not in devices:
            near = difflib.get_close_matches(name, devices, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(devices)}"
            raise UnknownDevice(f"no device {name!r} on this machine; {hint}")
        chosen = devices[name]
        label = f"device {name} ({chosen.description})"
        if chosen.kind != "cpu" and not chosen.visibility:
            raise UnknownDevice(f"{label}: its runtime does not answer; see `wavedeck doctor`, or use cpu")
        if chosen.target is not None and chosen.target not in known_targets:
            raise UnknownDevice(
                f"{label} is a {chosen.target}, which this version does not compile for; use cpu"
            )
    return tuple(devices[name] for name in dict.fromkeys(names))


def reachable_addresses() -> frozenset[str]:
    """Return the PCI addresses of the GPUs that this process could use if no variable limited it."""
    if not any(node.exists() for node in _DRIVER_NODES):
        return frozenset()
    return frozenset(gpu.address for gpu in _ask_drivers(limited=False))


@functools.cache
def _ask_drivers(*, limited: bool = True) -> tuple[DriverGpu, ...]:
    """The GPUs that the drivers' libraries report (`limited`: visible ones); none if a library is broken: `cpu` still judges."""
    ignored = () if limited else {name for names in VISIBILITY_VARIABLES.values() for name in names}
    try:
        answer = subprocess.run(
            [sys.executable, "-m", "harness.node.drivers"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_S,
            env={name: value for name, value in os.environ.items() if name not in ignored},
            cwd=PROJECT_ROOT,
        )
        return FOUND.decode(answer.stdout)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return ()


def device(gpu: DriverGpu, number: int, environ: Mapping[str, str] | None = None) -> Device:
    """Return the device that has this number in a process under `environ` (default: this process's)."""
    node = _amd_node(gpu.address) if gpu.kind == "hip" else {}
    memory = f", {memory_words(gpu.memory_bytes)}" if gpu.memory_bytes else ""
    return Device(
        name=str(number),
        kind=gpu.kind,
        target=gpu.target or _amd_target(node),
        description=f"{gpu.model}{memory}",
        visibility=visibility(gpu, number, os.environ if environ is None else environ),
        address=gpu.address,
        package=package_at(gpu.address) if gpu.kind == "hip" else pci_slot(gpu.address),
        identity=_identity(gpu, node),
    )


def _identity(gpu: DriverGpu, node: Mapping[str, int]) -> Identity:
    """Return what identifies a GPU's product, from its driver and from sysfs. Facts that neither knows are empty."""
    pci = pci_folder(gpu.address)
    compute, memory = (read_text(pci / f"current_{part}_partition") for part in ("compute", "memory"))
    return Identity(
        model=gpu.model,
        vendor_id=read_number(pci / "vendor"),
        device_id=read_number(pci / "device"),
        compute_units=gpu.compute_units or _amd_compute_units(node) or None,
        memory_bytes=gpu.memory_bytes or None,
        partition=f"{compute}/{memory}" if compute and memory else "",
    )


def visibility(gpu: DriverGpu, number: int, environ: Mapping[str, str]) -> str:
    """Return the `VARIABLE=value` that shows a process this GPU only, if all other such variables are unset.

    NVIDIA: the UUID, which does not depend on numbering, or the caller's own name for a MIG slice. AMD: the entry of the
    caller's innermost list, resolved outwards through the lists that it indexes.
    """
    lists = {name: environ[name].split(",") for name in VISIBILITY_VARIABLES[gpu.kind] if environ.get(name)}
    if gpu.kind == "cuda":
        entries = lists.get("CUDA_VISIBLE_DEVICES", [])
        entry = entries[number].strip() if number < len(entries) else ""
        return f"CUDA_VISIBLE_DEVICES={entry if entry.startswith('MIG-') else gpu.uuid}"
    if "HIP_VISIBLE_DEVICES" in lists:  # HIP reads CUDA's variable only if its own is not set
        lists.pop("CUDA_VISIBLE_DEVICES", None)
    entry, variable = str(number), "ROCR_VISIBLE_DEVICES"
    for name in reversed([name for name in VISIBILITY_VARIABLES["hip"] if name in lists]):
        if not entry.isdecimal():
            break
        if int(entry) >= len(lists[name]):
            return ""
        entry, variable = lists[name][int(entry)].strip(), name
    if "ROCR_VISIBLE_DEVICES" not in lists and entry.isdecimal():
        variable = "ROCR_VISIBLE_DEVICES"
    return f"{variable}={entry}"


def package_at(address: str) -> str:
    """Return the package of the AMD GPU at a PCI address.

    Partitions differ in the function alone. An MI250 or MI250X has two dies at two addresses. Four links join these dies,
    and fewer links join other dies (`max_bandwidth` of the driver's `io_links`, type 11; ROCm's documents on the MI250's
    topology). This is unverified on hardware.
    """
    slot = pci_slot(address)
    nodes = amd_gpus()
    here = next((number for number, node in nodes.items() if amd_address(node) == address), None)
    if here is None or nodes[here].get("device_id") not in _TWO_DIES:
        return slot
    partner = _closest_node(here)
    if partner not in nodes or _closest_node(partner) != here:
        return slot
    return min(slot, pci_slot(amd_address(nodes[partner])))


def _closest_node(node: int) -> int:
    """The node behind the widest XGMI link; -1 if no single link is the widest."""
    files = (drivers.KFD_NODES / str(node) / "io_links").glob("*/properties")
    links = [link for link in map(read_properties, files) if link.get("type") == _XGMI]
    by_width = sorted((link.get("max_bandwidth", 0), link.get("node_to", -1)) for link in links)
    if not by_width or (len(by_width) > 1 and by_width[-1][0] == by_width[-2][0]):
        return -1
    return by_width[-1][1]


def _amd_node(address: str) -> dict[str, int]:
    """The amdgpu driver's properties of the GPU at a PCI address."""
    slot = pci_slot(address)
    return next((node for node in amd_gpus().values() if pci_slot(amd_address(node)) == slot), {})


def _amd_compute_units(node: Mapping[str, int]) -> int:
    return node.get("simd_count", 0) // max(node.get("simd_per_cu", 1), 1)


def _amd_target(node: Mapping[str, int]) -> str | None:
    version = node.get("gfx_target_version", 0)
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else None


def _amd_devices() -> list[Device]:
    """GPUs that the amdgpu driver shows, for a machine whose runtime does not answer."""
    return [
        Device(
            name="",
            kind="hip",
            target=_amd_target(node),
            description=f"AMD GPU, {_amd_compute_units(node)} compute units",
        )
        for node in amd_gpus().values()
    ]


def _nvidia_devices() -> list[Device]:
    """GPUs that the nvidia driver shows, for a machine whose runtime does not answer."""
    devices = []
    for folder in sorted(_NVIDIA_GPUS.glob("*")):
        lines = (folder / "information").read_text(encoding="utf-8").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
        model = models[-1] if models else "NVIDIA GPU"
        devices.append(Device(name="", kind="cuda", description=model, address=folder.name.lower()))
    return devices
