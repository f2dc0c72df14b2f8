"""Which devices this machine has. Torch-free; the drivers' libraries are asked in a process of its own, once."""

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

from .drivers import FOUND, Found

CPU = Device(name="cpu", kind="cpu", description="Triton's interpreter")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")
_PCI = Path("/sys/bus/pci/devices")
_DRIVER_NODES = (Path("/dev/nvidiactl"), Path("/dev/kfd"))
_ASK_S = 30.0
_TWO_DIES = (0x7408, 0x740C)
"""PCI ids of the dies of an MI250X and an MI250 (`amdgpu_drv.c`; 0x740f, an MI210, is alone)."""
_XGMI = 11
"""`CRAT_IOLINK_TYPE_XGMI` of `kfd_crat.h`."""


def discover_devices() -> tuple[Device, ...]:
    """`cpu`, and the GPUs that a process of ours would see, numbered as it numbers them."""
    return (CPU, *_gpus())


def choose_devices(names: Sequence[str]) -> tuple[Device, ...]:
    """The devices of these names; `UnknownDevice` when one is not here, or is a GPU whose runtime does not answer."""
    if not names:
        raise UnknownDevice("no device is named; use cpu")
    found = {device.name: device for device in discover_devices()}
    known = {one.name for one in targets()}
    for name in names:
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            raise UnknownDevice(
                f"no device {name!r} on this machine; "
                + (f"did you mean {near[0]}?" if near else f"it has {', '.join(found)}")
            )
        if found[name].kind != "cpu" and not found[name].visibility:
            raise UnknownDevice(
                f"device {name} ({found[name].description}): its runtime does not answer; see `wavedeck doctor`, or use cpu"
            )
        own = found[name].target
        if own is not None and own not in known:
            raise UnknownDevice(
                f"device {name} ({found[name].description}) is a {own}, which this version does not compile for; use cpu"
            )
    return tuple(found[name] for name in dict.fromkeys(names))


def _gpus() -> tuple[Device, ...]:
    if any(node.exists() for node in _DRIVER_NODES):
        answered = [device(one, number) for number, one in enumerate(_ask_drivers())]
        if answered:
            return tuple(answered)
    return tuple(
        msgspec.structs.replace(one, name=str(number)) for number, one in enumerate([*_amd(), *_nvidia()])
    )


def reachable_addresses() -> frozenset[str]:
    """PCI addresses of the GPUs that this process could use if no variable limited it."""
    if not any(node.exists() for node in _DRIVER_NODES):
        return frozenset()
    return frozenset(one.address for one in _ask_drivers(limited=False))


@functools.cache
def _ask_drivers(*, limited: bool = True) -> tuple[Found, ...]:
    """What the drivers' libraries say, nothing when they do not: a broken driver must not keep `cpu` from judging.

    `limited`: by the variables of the caller.
    """
    lists = () if limited else {name for names in VISIBILITY_VARIABLES.values() for name in names}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness.node.drivers"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_S,
            env={name: value for name, value in os.environ.items() if name not in lists},
            cwd=PROJECT_ROOT,
        )
        return FOUND.decode(done.stdout)
    except (OSError, subprocess.SubprocessError, msgspec.DecodeError):
        return ()


def device(found: Found, number: int, environ: Mapping[str, str] | None = None) -> Device:
    """The device that a process under `environ` (this one's) numbers so."""
    environ = os.environ if environ is None else environ
    node = _node_at(found.address) if found.kind == "hip" else {}
    memory = f", {found.memory_bytes / (1 << 30):.0f} GiB" if found.memory_bytes else ""
    return Device(
        name=str(number),
        kind=found.kind,
        target=found.target or _gfx(node.get("gfx_target_version", 0)),
        description=f"{found.model}{memory}",
        visibility=visibility(found, number, environ),
        address=found.address,
        package=package_at(found.address) if found.kind == "hip" else _slot_of(found.address),
        identity=_identity(found, node),
    )


def _identity(found: Found, node: Mapping[str, int]) -> Identity:
    """What tells the product; `node` are the kernel driver's facts, empty where it has none."""
    pci = _on_bus(found.address)
    compute, memory = (_text(pci / f"current_{part}_partition") for part in ("compute", "memory"))
    units = found.compute_units or node.get("simd_count", 0) // max(node.get("simd_per_cu", 1), 1)
    return Identity(
        model=found.model,
        vendor_id=_hexadecimal(pci / "vendor"),
        device_id=_hexadecimal(pci / "device"),
        compute_units=units or None,
        memory_bytes=found.memory_bytes or None,
        partition=f"{compute}/{memory}" if compute and memory else "",
    )


def visibility(found: Found, number: int, environ: Mapping[str, str]) -> str:
    """`VARIABLE=value` that alone, the others unset, shows a process this GPU only.

    NVIDIA's by UUID, which no numbering changes; a part of one (MIG) by the name the caller has for it. AMD's by the
    entry of the caller's innermost list, followed outwards through the lists that it counts in.
    """
    lists = {
        name: environ[name].split(",")
        for name in VISIBILITY_VARIABLES[found.kind]
        if environ.get(name) and (found.kind == "cuda" or name != "CUDA_VISIBLE_DEVICES" or _alone(environ))
    }
    if found.kind == "cuda":
        entries = lists.get("CUDA_VISIBLE_DEVICES", [])
        entry = entries[number].strip() if number < len(entries) else ""
        return f"CUDA_VISIBLE_DEVICES={entry if entry.startswith('MIG-') else found.uuid}"
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


def _alone(environ: Mapping[str, str]) -> bool:
    """HIP reads CUDA's variable where its own is not set."""
    return not environ.get("HIP_VISIBLE_DEVICES")


def _node_at(address: str) -> dict[str, int]:
    """The amdgpu driver's facts on the GPU at a PCI address."""
    slot = _slot_of(address)
    return next((facts for facts in _amd_nodes() if _slot_of(_address(facts)) == slot), {})


def package_at(address: str) -> str:
    """The package of the AMD GPU at a PCI address.

    Partitions differ in the function alone. An MI250 or MI250X has two dies at two addresses, which four links join where
    other dies have fewer (`max_bandwidth` of the driver's `io_links`, type 11; ROCm's documents on the MI250's topology);
    this is unverified on hardware.
    """
    own = _slot_of(address)
    nodes = _kfd_nodes()
    here = next((number for number, facts in nodes.items() if _address(facts) == address), None)
    if here is None or nodes[here].get("device_id") not in _TWO_DIES:
        return own
    partner = _closest(here)
    if partner not in nodes or _closest(partner) != here:
        return own
    return min(own, _slot_of(_address(nodes[partner])))


def _closest(node: int) -> int:
    """The node that the widest XGMI link leads to; -1 where no link is the widest."""
    links = [_properties(file) for file in (_KFD_NODES / str(node) / "io_links").glob("*/properties")]
    wide = sorted(
        (link.get("max_bandwidth", 0), link.get("node_to", -1)) for link in links if link.get("type") == _XGMI
    )
    if not wide or (len(wide) > 1 and wide[-1][0] == wide[-2][0]):
        return -1
    return wide[-1][1]


def _slot_of(address: str) -> str:
    """A PCI address without its function."""
    return address.rpartition(".")[0]


def _address(facts: Mapping[str, int]) -> str:
    place = facts.get("location_id", 0)
    return f"{facts.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7:x}"


def _amd() -> list[Device]:
    """GPUs that the amdgpu driver shows, where no runtime answers."""
    return [
        Device(
            name="",
            kind="hip",
            target=_gfx(facts.get("gfx_target_version", 0)),
            description=f"AMD GPU, {facts['simd_count'] // max(facts.get('simd_per_cu', 1), 1)} compute units",
        )
        for facts in _amd_nodes()
    ]


def _amd_nodes() -> list[dict[str, int]]:
    """Nodes with SIMDs, in the driver's order; the others are CPUs."""
    return list(_kfd_nodes().values())


def _kfd_nodes() -> dict[int, dict[str, int]]:
    """The same by the driver's number."""
    numbers = sorted(int(folder.name) for folder in _KFD_NODES.glob("*"))
    found = {number: _properties(_KFD_NODES / str(number) / "properties") for number in numbers}
    return {number: facts for number, facts in found.items() if facts.get("simd_count", 0) > 0}


def _nvidia() -> list[Device]:
    """GPUs that the nvidia driver shows, where no runtime answers."""
    devices = []
    for gpu in sorted(_NVIDIA_GPUS.glob("*")):
        model = "NVIDIA GPU"
        for line in (gpu / "information").read_text(encoding="utf-8").splitlines():
            if line.startswith("Model:"):
                model = line.partition(":")[2].strip()
        devices.append(Device(name="", kind="cuda", description=model, address=gpu.name.lower()))
    return devices


def _gfx(version: int) -> str | None:
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else None


def _on_bus(address: str) -> Path:
    """The folder of a PCI device. Partitions of one package differ in a function number that the bus does not have."""
    folder = _PCI / address
    return folder if folder.exists() else _PCI / f"{address.partition('.')[0]}.0"


def _text(file: Path) -> str:
    """One line of the kernel's; empty where it is not there, or a container may not read it."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _hexadecimal(file: Path) -> int | None:
    text = _text(file)
    return int(text, 16) if text.startswith("0x") else None


def _properties(file: Path) -> dict[str, int]:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}  # a node that a container may not read is no device of ours
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
