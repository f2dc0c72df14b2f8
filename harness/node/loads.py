"""What the drivers tell of the use of GPUs now: NVIDIA's by `nvidia-smi`, AMD's by files of the kernel driver (unverified on hardware)."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from harness.wire.device import Device

_ASK_S = 15.0
_PCI = Path("/sys/bus/pci/devices")
_KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")
_KFD_PROCESSES = Path("/sys/class/kfd/kfd/proc")
_MIB = 1 << 20


class Load(msgspec.Struct, frozen=True):
    """The use of one GPU; what cannot be read is `None`, never 0."""

    busy_percent: float | None = None
    memory_used_bytes: int | None = None
    processes: int | None = None
    """That compute on it, as far as this process's namespace shows them."""


class LoadProbe(Protocol):
    """Reads the load of GPUs."""

    def __call__(self, devices: Sequence[Device]) -> Mapping[str, Load]:
        """By name; a device that nobody tells of may be missing. Raises for nothing it finds."""
        ...


def read_loads(devices: Sequence[Device]) -> dict[str, Load]:
    """See `LoadProbe`. Takes about a tenth of a second where there are NVIDIA GPUs."""
    found = {device.name: _amd(device) for device in devices if device.kind == "hip"}
    nvidia = [device for device in devices if device.kind == "cuda"]
    if nvidia:
        told = parse_nvidia(
            _nvidia_smi("--query-gpu=pci.bus_id,utilization.gpu,memory.used"),
            _nvidia_smi("--query-compute-apps=gpu_bus_id,pid"),
        )
        found |= {device.name: told[device.address] for device in nvidia if device.address in told}
    return found


def parse_nvidia(gpus: str | None, processes: str | None) -> dict[str, Load]:
    """Loads by PCI address, from `nvidia-smi`'s tables without header and units; `None` for one that it did not give."""
    counted = Counter(_address(cells[0]) for cells in _rows(processes or "", 2))
    return {
        _address(place): Load(
            busy_percent=_number(busy),
            memory_used_bytes=None if (used := _number(memory)) is None else int(used) * _MIB,
            processes=None if processes is None else counted[_address(place)],
        )
        for place, busy, memory in _rows(gpus or "", 3)
    }


def _nvidia_smi(query: str) -> str | None:
    try:
        done = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


def _rows(table: str, columns: int) -> Iterator[list[str]]:
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == columns:
            yield cells


def _address(bus_id: str) -> str:
    """`00000000:0A:00.0` as the runtime writes it, `0000:0a:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _number(cell: str) -> float | None:
    """`[N/A]` and its like are no number."""
    try:
        return float(cell)
    except ValueError:
        return None


def _amd(device: Device) -> Load:
    """Partitions beside the first have no PCI device of their own: they are told by the package's."""
    folder = next(
        (
            one
            for one in (_PCI / device.address, _PCI / f"{device.address.rpartition('.')[0]}.0")
            if one.is_dir()
        ),
        _PCI / "none",
    )
    busy, used = _whole(folder / "gpu_busy_percent"), _whole(folder / "mem_info_vram_used")
    return Load(
        busy_percent=None if busy is None else float(busy),
        memory_used_bytes=used,
        processes=_kfd_processes(device.address),
    )


def _kfd_processes(address: str) -> int | None:
    """Processes with memory on the GPU at this address; `None` where the driver does not show them."""
    node = next((one for one in _KFD_NODES.glob("*") if _kfd_address(one / "properties") == address), None)
    number = _whole(node / "gpu_id") if node is not None else None
    if number is None or not _KFD_PROCESSES.is_dir():
        return None
    return sum(bool(_whole(file)) for file in _KFD_PROCESSES.glob(f"*/vram_{number}"))


def _kfd_address(properties: Path) -> str:
    """The PCI address in a node's properties; empty where they cannot be read."""
    try:
        pairs = [line.split() for line in properties.read_text(encoding="ascii").splitlines()]
    except OSError:
        return ""
    facts = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
    place = facts.get("location_id", 0)
    return f"{facts.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7:x}"


def _whole(file: Path) -> int | None:
    try:
        return int(file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
