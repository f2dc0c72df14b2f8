"""Protects the discovery of GPUs from driver files and libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness import Identity, discover_devices, product_of
from harness.node import discovery as module
from harness.node import drivers
from harness.node.drivers import FOUND, DriverGpu
from harness.wire.errors import UnknownDevice
from tests.support.judge.fake_nodes import DriversAnswer, drivers_answer

__all__ = ["drivers_answer"]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one CPU node and one MI300X, in the file format of the amdgpu driver."""
    for number, text in enumerate(
        ("simd_count 0\n", "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\n")
    ):
        folder = tmp_path / "kfd" / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(text)
    monkeypatch.setattr(drivers, "KFD_NODES", tmp_path / "kfd")
    monkeypatch.setattr(module, "_NVIDIA_GPUS", tmp_path / "none")
    monkeypatch.setattr(module, "_DRIVER_NODES", ())
    return tmp_path


def test_driver_gpu_is_listed_with_target(node: Path) -> None:
    devices = discover_devices()
    assert [(device.name, device.kind, device.target) for device in devices] == [
        ("cpu", "cpu", None),
        ("0", "hip", "gfx942"),
    ]
    assert "304 compute units" in devices[1].description


def test_gpu_without_runtime_is_refused(node: Path) -> None:
    with pytest.raises(UnknownDevice, match=r"its runtime does not answer.* or use cpu"):
        module.choose_devices(("0",))


H200 = DriverGpu(
    kind="cuda",
    model="NVIDIA H200",
    address="0000:0a:00.0",
    uuid="GPU-1f",
    target="sm_90",
    memory_bytes=140 << 30,
)
MI300X = DriverGpu(kind="hip", model="AMD Instinct MI300X", address="0000:c1:00.0", memory_bytes=192 << 30)


def test_nvidia_gpu_is_selected_by_uuid(drivers_answer: DriversAnswer) -> None:
    drivers_answer(H200)
    (device,) = module.choose_devices(("0",))
    assert (device.target, device.description) == ("sm_90", "NVIDIA H200, 140 GiB")
    assert (device.visibility, device.address) == ("CUDA_VISIBLE_DEVICES=GPU-1f", "0000:0a:00.0")


def test_amd_gpu_target_comes_from_node_at_its_address(node: Path, drivers_answer: DriversAnswer) -> None:
    properties = "simd_count 1216\ngfx_target_version 90500\ndomain 0\nlocation_id 49408\n"
    (node / "kfd" / "2").mkdir()
    (node / "kfd" / "2" / "properties").write_text(properties)
    drivers_answer(MI300X)
    assert module.discover_devices()[1].target == "gfx950"


def write_pci_device(folder: Path, address: str, **lines: str) -> None:
    """Writes the kernel's files of one PCI device."""
    (folder / address).mkdir(parents=True)
    for name, text in lines.items():
        (folder / address / name).write_text(f"{text}\n")


def test_partition_is_recognised_by_bus_units_and_mode(
    node: Path, drivers_answer: DriversAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = "simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\ndomain 0\nlocation_id 49408\n"
    (node / "kfd" / "2").mkdir()
    (node / "kfd" / "2" / "properties").write_text(properties)
    bus = node / "pci"
    write_pci_device(
        bus,
        "0000:c1:00.0",
        vendor="0x1002",
        device="0x74a1",
        current_compute_partition="CPX",
        current_memory_partition="NPS4",
    )
    monkeypatch.setattr(drivers, "PCI_DEVICES", bus)
    drivers_answer(
        *(
            msgspec.structs.replace(
                MI300X, model="AMD Radeon Graphics", memory_bytes=24 << 30, address=address
            )
            for address in ("0000:c1:00.0", "0000:c1:00.3")
        ),
    )
    _, first, second = module.discover_devices()
    assert (first.identity, first.target) == (second.identity, second.target)
    assert first.identity == Identity("AMD Radeon Graphics", 0x1002, 0x74A1, 38, 24 << 30, "CPX/NPS4")
    product, why = product_of(first)
    assert product is not None, why
    assert product.name == "MI300X CPX/NPS4"


def test_gpu_of_unsupported_target_is_refused(drivers_answer: DriversAnswer) -> None:
    drivers_answer(msgspec.structs.replace(H200, target="sm_61"))
    with pytest.raises(UnknownDevice, match="is a sm_61, which this version does not compile for"):
        module.choose_devices(("0",))


@pytest.mark.parametrize(
    ("gpu", "number", "environ", "expected"),
    [
        (MI300X, 3, {}, "ROCR_VISIBLE_DEVICES=3"),
        (MI300X, 1, {"ROCR_VISIBLE_DEVICES": "4,6"}, "ROCR_VISIBLE_DEVICES=6"),
        (MI300X, 1, {"ROCR_VISIBLE_DEVICES": "GPU-aa,GPU-bb"}, "ROCR_VISIBLE_DEVICES=GPU-bb"),
        (MI300X, 0, {"HIP_VISIBLE_DEVICES": "5,2"}, "ROCR_VISIBLE_DEVICES=5"),
        (MI300X, 0, {"CUDA_VISIBLE_DEVICES": "5"}, "ROCR_VISIBLE_DEVICES=5"),
        (MI300X, 0, {"HIP_VISIBLE_DEVICES": "1", "CUDA_VISIBLE_DEVICES": "0"}, "ROCR_VISIBLE_DEVICES=1"),
        (
            MI300X,
            1,
            {"ROCR_VISIBLE_DEVICES": "4,6,7", "HIP_VISIBLE_DEVICES": "0,2"},
            "ROCR_VISIBLE_DEVICES=7",
        ),
        (MI300X, 0, {"HIP_VISIBLE_DEVICES": "GPU-cc"}, "HIP_VISIBLE_DEVICES=GPU-cc"),
        (MI300X, 2, {"HIP_VISIBLE_DEVICES": "0"}, ""),
        (H200, 1, {"CUDA_VISIBLE_DEVICES": "3,1"}, "CUDA_VISIBLE_DEVICES=GPU-1f"),
        (H200, 0, {"CUDA_VISIBLE_DEVICES": "MIG-7"}, "CUDA_VISIBLE_DEVICES=MIG-7"),
    ],
)
def test_visibility_picks_one_gpu_from_caller_lists(
    gpu: DriverGpu, number: int, environ: dict[str, str], expected: str
) -> None:
    assert module.visibility(gpu, number, environ) == expected


def test_drivers_program_answers_without_a_driver() -> None:
    done = subprocess.run([sys.executable, "-m", "harness.node.drivers"], capture_output=True, check=True)
    assert all(gpu.kind in ("cuda", "hip") for gpu in FOUND.decode(done.stdout))


def test_repeated_device_name_counts_once_and_empty_list_is_an_error() -> None:
    assert [device.name for device in module.choose_devices(("cpu", "cpu"))] == ["cpu"]
    with pytest.raises(UnknownDevice, match="use cpu"):
        module.choose_devices(())


def write_kfd_node(root: Path, number: int, bus: int, device_id: int, links: dict[int, int]) -> None:
    """Writes a GPU of the driver's topology; `links` maps a node's number to the XGMI link's bandwidth."""
    folder = root / "kfd" / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"simd_count 440\nsimd_per_cu 4\ngfx_target_version 90010\ndevice_id {device_id}\ndomain 0\n"
    (folder / "properties").write_text(f"{facts}location_id {bus << 8}\n")
    for place, (neighbour, bandwidth) in enumerate(links.items()):
        link = folder / "io_links" / str(place)
        link.mkdir(parents=True)
        (link / "properties").write_text(f"type 11\nnode_to {neighbour}\nmax_bandwidth {bandwidth}\n")


def test_two_dies_of_mi250x_are_one_package(node: Path) -> None:
    wide, narrow = 200_000, 50_000
    write_kfd_node(node, 4, 0xC1, 0x7408, {5: wide, 6: narrow})
    write_kfd_node(node, 5, 0xC6, 0x7408, {4: wide, 7: narrow})
    write_kfd_node(node, 6, 0xC9, 0x7408, {4: narrow, 7: wide})
    write_kfd_node(node, 7, 0xCE, 0x7408, {6: wide, 5: narrow})
    packages = [module.package_at(f"0000:{bus:02x}:00.0") for bus in (0xC1, 0xC6, 0xC9, 0xCE)]
    assert packages == ["0000:c1:00", "0000:c1:00", "0000:c9:00", "0000:c9:00"]


def test_partitions_of_a_gpu_are_one_package(drivers_answer: DriversAnswer) -> None:
    drivers_answer(MI300X, msgspec.structs.replace(MI300X, address="0000:c1:00.5"))
    assert [device.package for device in module.discover_devices()] == ["", "0000:c1:00", "0000:c1:00"]
