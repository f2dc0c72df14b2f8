"""The current use of GPUs: NVIDIA's by `nvidia-smi`, AMD's by files of the kernel driver (unverified on hardware)."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harness.wire.device import Device
from harness.wire.results.latency import DeviceReading

from . import drivers
from .drivers import amd_address, amd_gpus, pci_folder, read_number

_ASK_S = 15.0
_KFD_PROCESSES = Path("/sys/class/kfd/kfd/proc")
_MIB = 1 << 20


LoadProbe = Callable[[Sequence[Device]], Mapping[str, DeviceReading]]
"""Returns busy share, used memory and processes by device name; a device without any report may be missing. Never raises.

Processes are those that compute on it, as far as this process's PID namespace shows them.
"""


def read_loads(devices: Sequence[Device]) -> dict[str, DeviceReading]:
    """The `LoadProbe` of the drivers. Takes about 0.1 s with NVIDIA GPUs."""
    loads = {device.name: _amd_load(device) for device in devices if device.kind == "hip"}
    nvidia = [device for device in devices if device.kind == "cuda"]
    if nvidia:
        by_address = parse_nvidia(
            _nvidia_smi("--query-gpu=pci.bus_id,utilization.gpu,memory.used"),
            _nvidia_smi("--query-compute-apps=gpu_bus_id,pid"),
        )
        loads |= {
            device.name: by_address[device.address] for device in nvidia if device.address in by_address
        }
    return loads


def parse_nvidia(gpus: str | None, processes: str | None) -> dict[str, DeviceReading]:
    """Return loads by PCI address from `nvidia-smi`'s tables without header and units; `None` for a missing table."""
    process_counts = Counter(_short_address(cells[0]) for cells in _rows(processes or "", 2))
    return {
        _short_address(address): DeviceReading(
            busy_percent=_parse_number(busy),
            memory_used_bytes=None if (used := _parse_number(memory)) is None else int(used) * _MIB,
            other_processes=None if processes is None else process_counts[_short_address(address)],
        )
        for address, busy, memory in _rows(gpus or "", 3)
    }


def _nvidia_smi(query: str) -> str | None:
    """Return the rows that `nvidia-smi` prints for a query; `None` if it is missing, fails or hangs."""
    try:
        answer = subprocess.run(
            ["nvidia-smi", query, "--format=csv,noheader,nounits"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            check=True,
            timeout=_ASK_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.decode(errors="replace")


def _rows(table: str, columns: int) -> Iterator[list[str]]:
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == columns:
            yield cells


def _short_address(bus_id: str) -> str:
    """`00000000:0A:00.0` as the runtime writes it: `0000:0a:00.0`."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _parse_number(cell: str) -> float | None:
    """`None` for `[N/A]` and the like."""
    try:
        return float(cell)
    except ValueError:
        return None


def _amd_load(device: Device) -> DeviceReading:
    folder = pci_folder(device.address)
    return DeviceReading(
        busy_percent=read_number(folder / "gpu_busy_percent"),
        memory_used_bytes=read_number(folder / "mem_info_vram_used"),
        other_processes=_amd_processes(device.address),
    )


def _amd_processes(address: str) -> int | None:
    """Processes with memory on the GPU at this address; `None` if the driver does not show them."""
    node = next((number for number, node in amd_gpus().items() if amd_address(node) == address), None)
    gpu_id = None if node is None else read_number(drivers.KFD_NODES / str(node) / "gpu_id")
    if gpu_id is None or not _KFD_PROCESSES.is_dir():
        return None
    return sum(bool(read_number(file)) for file in _KFD_PROCESSES.glob(f"*/vram_{gpu_id}"))
