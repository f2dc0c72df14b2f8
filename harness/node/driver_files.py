"""Files in which Linux and the amdgpu driver describe GPUs, read by `discovery`, `loads` and `telemetry`. No torch.

A file that is missing, or that a container may not read, says nothing; it is never an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PCI_DEVICES = Path("/sys/bus/pci/devices")
KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def read_text(file: Path) -> str:
    """Return the file's text without the space around it; empty if it cannot be read."""
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def read_number(file: Path) -> int | None:
    """Return the decimal or `0x` number in the file; `None` if there is none."""
    try:
        return int(read_text(file), 0)
    except ValueError:
        return None


def read_properties(file: Path) -> dict[str, int]:
    """Return the numbers of a file with a name and a value on each line."""
    pairs = (line.split() for line in read_text(file).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def pci_folder(address: str) -> Path:
    """Return the folder of a PCI device. Partitions of an AMD package have function numbers that the bus does not know."""
    folder = PCI_DEVICES / address
    return folder if folder.exists() else PCI_DEVICES / f"{pci_slot(address)}.0"


def pci_slot(address: str) -> str:
    """Return a PCI address without its function."""
    return address.rpartition(".")[0]


def amd_gpus() -> dict[int, dict[str, int]]:
    """Return the properties of the amdgpu driver's nodes that have SIMDs, by number; all other nodes are CPUs."""
    numbers = sorted(int(folder.name) for folder in KFD_NODES.glob("*"))
    nodes = {number: read_properties(KFD_NODES / str(number) / "properties") for number in numbers}
    return {number: properties for number, properties in nodes.items() if properties.get("simd_count", 0) > 0}


def amd_address(properties: Mapping[str, int]) -> str:
    """Return the PCI address of one of the amdgpu driver's nodes."""
    place = properties.get("location_id", 0)
    return f"{properties.get('domain', 0):04x}:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7:x}"
