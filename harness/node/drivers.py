"""Asks drivers about GPUs: `python -m harness.node.drivers` prints the GPUs that their libraries report, as JSON. No torch.

That runs as a process of its own, so that its caller opens no driver and can still fork. It has the caller's environment, so it
sees the GPUs that the caller may use.

`discovery`, `loads` and `telemetry` read the files in which Linux and the amdgpu driver describe GPUs. A file that is missing, or
that a container may not read, says nothing; it is never an error.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from ctypes import byref, c_char, c_int, c_size_t, create_string_buffer
from pathlib import Path

import msgspec

_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
"""`CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*` of the CUDA driver API."""
_MULTIPROCESSORS = 16
"""`CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`."""
PCI_DEVICES = Path("/sys/bus/pci/devices")
KFD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


class DriverGpu(msgspec.Struct, frozen=True):
    """One GPU. Their order is the order in which a process of the caller numbers them."""

    kind: str
    """`cuda` or `hip`."""
    model: str
    address: str
    uuid: str = ""
    """`GPU-...`; empty if the driver's library does not report it."""
    target: str = ""
    """`sm_90`, for example; empty if only the kernel driver knows it."""
    memory_bytes: int = 0
    compute_units: int = 0
    """0 if only the kernel driver knows it."""


FOUND: msgspec.json.Decoder[tuple[DriverGpu, ...]] = msgspec.json.Decoder(tuple[DriverGpu, ...])


def cuda_gpus() -> Iterator[DriverGpu]:
    """Yield the GPUs that `libcuda` reports; none if it is missing or fails.

    A GPU with a fact that it does not know is left out.
    """
    library = _library("libcuda.so.1")
    count = c_int()
    if library is None or library.cuInit(0) != 0 or library.cuDeviceGetCount(byref(count)) != 0:
        return
    for number in range(count.value):
        device, major, minor, units = c_int(), c_int(), c_int(), c_int()
        model, address, uuid = create_string_buffer(256), create_string_buffer(32), (c_char * 16)()
        memory = c_size_t()
        results = (
            library.cuDeviceGet(byref(device), number),
            library.cuDeviceGetName(model, 256, device),
            library.cuDeviceGetPCIBusId(address, 32, device),
            library.cuDeviceGetUuid_v2(uuid, device),
            library.cuDeviceGetAttribute(byref(major), _CAPABILITY_MAJOR, device),
            library.cuDeviceGetAttribute(byref(minor), _CAPABILITY_MINOR, device),
            library.cuDeviceGetAttribute(byref(units), _MULTIPROCESSORS, device),
            library.cuDeviceTotalMem_v2(byref(memory), device),
        )
        if not any(results):
            digits = bytes(uuid).hex()
            parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
            yield DriverGpu(
                kind="cuda",
                model=_text(model),
                address=_text(address).lower(),
                uuid="GPU-" + "-".join(parts),
                target=f"sm_{major.value}{minor.value}",
                memory_bytes=memory.value,
                compute_units=units.value,
            )


def hip_gpus() -> Iterator[DriverGpu]:
    """Yield the GPUs that `libamdhip64` (the system's or torch's) reports; none if it is missing or fails."""
    library = _library("libamdhip64.so", *_in_torch("libamdhip64.so*"))
    count = c_int()
    if library is None or library.hipInit(0) != 0 or library.hipGetDeviceCount(byref(count)) != 0:
        return
    for number in range(count.value):
        model, address, memory = create_string_buffer(256), create_string_buffer(32), c_size_t()
        results = (
            library.hipDeviceGetName(model, 256, number),
            library.hipDeviceGetPCIBusId(address, 32, number),
            library.hipDeviceTotalMem(byref(memory), number),
        )
        if not any(results):
            yield DriverGpu(
                kind="hip", model=_text(model), address=_text(address).lower(), memory_bytes=memory.value
            )


def _library(*names: str) -> ctypes.CDLL | None:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def _in_torch(pattern: str) -> list[str]:
    """Libraries in torch's folder: vendors' wheels of torch contain the runtime."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        return []
    return [str(file) for file in sorted((Path(spec.origin).parent / "lib").glob(pattern))]


def _text(buffer: ctypes.Array[c_char]) -> str:
    return bytes(buffer).partition(b"\0")[0].decode(errors="replace").strip()


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


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode([*cuda_gpus(), *hip_gpus()]))
