"""Which devices this machine has. Torch-free: asking opens no GPU runtime."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from .device import Device
from .errors import UnknownDevice

CPU = Device(name="cpu", kind="cpu", description="Triton's interpreter")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_NVIDIA_GPUS = Path("/proc/driver/nvidia/gpus")


def discover_devices() -> tuple[Device, ...]:
    """`cpu`, and the GPUs that the kernel drivers show, numbered per vendor in the drivers' order."""
    return (CPU, *_amd(), *_nvidia())


def choose_devices(names: Sequence[str]) -> tuple[Device, ...]:
    """The devices of these names; `UnknownDevice` when one is not here, or is a GPU, which are not judged on yet."""
    if not names:
        raise UnknownDevice("no device is named; use cpu")
    found = {device.name: device for device in discover_devices()}
    for name in names:
        if name not in found:
            near = difflib.get_close_matches(name, found, n=1)
            raise UnknownDevice(
                f"no device {name!r} on this machine; "
                + (f"did you mean {near[0]}?" if near else f"it has {', '.join(found)}")
            )
        if found[name].kind != "cpu":
            raise UnknownDevice(
                f"device {name} ({found[name].description}) cannot judge in this version; use cpu"
            )
    return tuple(found[name] for name in dict.fromkeys(names))


def _amd() -> tuple[Device, ...]:
    """GPUs of the amdgpu driver; nodes without SIMDs are CPUs."""
    devices: list[Device] = []
    for node in sorted(_KFD_NODES.glob("*"), key=lambda folder: int(folder.name)):
        facts = _properties(node / "properties")
        if facts.get("simd_count", 0) > 0:
            version = facts.get("gfx_target_version", 0)
            target = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else None
            description = (
                f"AMD GPU, {facts.get('simd_count', 0) // max(facts.get('simd_per_cu', 1), 1)} compute units"
            )
            devices.append(Device(name=str(len(devices)), kind="hip", target=target, description=description))
    return tuple(devices)


def _nvidia() -> tuple[Device, ...]:
    devices = []
    for number, gpu in enumerate(sorted(_NVIDIA_GPUS.glob("*"))):
        model = "NVIDIA GPU"
        for line in (gpu / "information").read_text(encoding="utf-8").splitlines():
            if line.startswith("Model:"):
                model = line.partition(":")[2].strip()
        devices.append(Device(name=str(number), kind="cuda", description=model))
    return tuple(devices)


def _properties(file: Path) -> dict[str, int]:
    try:
        lines = file.read_text(encoding="ascii").splitlines()
    except OSError:
        return {}  # a node that a container may not read is no device of ours
    pairs = (line.split() for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
