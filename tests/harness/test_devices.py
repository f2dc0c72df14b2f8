"""Devices that the kernel drivers show, read from files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness import Identity, UnknownDevice, discover_devices, product_of
from harness.linux.process_environment import worker_environment
from harness.node import discovery as module
from harness.node import driver_files
from harness.node.drivers import FOUND, Found


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with one CPU node and one MI300X, as the amdgpu driver shows them."""
    for number, text in enumerate(
        ("simd_count 0\n", "simd_count 1216\nsimd_per_cu 4\ngfx_target_version 90402\n")
    ):
        folder = tmp_path / "kfd" / str(number)
        folder.mkdir(parents=True)
        (folder / "properties").write_text(text)
    monkeypatch.setattr(driver_files, "KFD_NODES", tmp_path / "kfd")
    monkeypatch.setattr(module, "_NVIDIA_GPUS", tmp_path / "none")
    monkeypatch.setattr(module, "_DRIVER_NODES", ())
    return tmp_path


def test_a_gpu_of_the_driver_is_listed_with_its_target(node: Path) -> None:
    found = discover_devices()
    assert [(one.name, one.kind, one.target) for one in found] == [
        ("cpu", "cpu", None),
        ("0", "hip", "gfx942"),
    ]
    assert "304 compute units" in found[1].description


def test_a_gpu_whose_runtime_does_not_answer_cannot_judge_and_says_so(node: Path) -> None:
    with pytest.raises(UnknownDevice, match=r"its runtime does not answer.* or use cpu"):
        module.choose_devices(("0",))


def answering(monkeypatch: pytest.MonkeyPatch, *found: Found) -> None:
    """A machine on which the drivers' libraries say this."""
    monkeypatch.setattr(module, "_DRIVER_NODES", (Path("/"),))
    monkeypatch.setattr(module, "_ask_drivers", lambda **_: found)


H200 = Found(
    kind="cuda",
    model="NVIDIA H200",
    address="0000:0a:00.0",
    uuid="GPU-1f",
    target="sm_90",
    memory_bytes=140 << 30,
)
MI300X = Found(kind="hip", model="AMD Instinct MI300X", address="0000:c1:00.0", memory_bytes=192 << 30)


def test_an_nvidia_gpu_is_shown_to_a_process_by_its_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, H200)
    (found,) = module.choose_devices(("0",))
    assert (found.target, found.description) == ("sm_90", "NVIDIA H200, 140 GiB")
    assert (found.visibility, found.address) == ("CUDA_VISIBLE_DEVICES=GPU-1f", "0000:0a:00.0")


def test_an_amd_gpu_has_the_target_of_the_node_at_its_address(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = "simd_count 1216\ngfx_target_version 90500\ndomain 0\nlocation_id 49408\n"
    (node / "kfd" / "2").mkdir()
    (node / "kfd" / "2" / "properties").write_text(properties)
    answering(monkeypatch, MI300X)
    assert module.discover_devices()[1].target == "gfx950"


def pci(folder: Path, address: str, **lines: str) -> None:
    """A device of the PCI bus as the kernel shows it."""
    (folder / address).mkdir(parents=True)
    for name, text in lines.items():
        (folder / address / name).write_text(f"{text}\n")


def test_a_partition_of_a_package_is_recognised_by_bus_units_and_mode(
    node: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    properties = "simd_count 152\nsimd_per_cu 4\ngfx_target_version 90402\ndomain 0\nlocation_id 49408\n"
    (node / "kfd" / "2").mkdir()
    (node / "kfd" / "2" / "properties").write_text(properties)
    bus = node / "pci"
    pci(
        bus,
        "0000:c1:00.0",
        vendor="0x1002",
        device="0x74a1",
        current_compute_partition="CPX",
        current_memory_partition="NPS4",
    )
    monkeypatch.setattr(driver_files, "PCI_DEVICES", bus)
    answering(
        monkeypatch,
        *(
            msgspec.structs.replace(
                MI300X, model="AMD Radeon Graphics", memory_bytes=24 << 30, address=address
            )
            for address in ("0000:c1:00.0", "0000:c1:00.3")
        ),
    )
    _, one, same = module.discover_devices()
    assert (one.identity, one.target) == (same.identity, same.target)
    assert one.identity == Identity("AMD Radeon Graphics", 0x1002, 0x74A1, 38, 24 << 30, "CPX/NPS4")
    product, why = product_of(one)
    assert product is not None, why
    assert product.name == "MI300X CPX/NPS4"


def test_a_target_that_nothing_compiles_for_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, msgspec.structs.replace(H200, target="sm_61"))
    with pytest.raises(UnknownDevice, match="is a sm_61, which this version does not compile for"):
        module.choose_devices(("0",))


@pytest.mark.parametrize(
    ("found", "number", "environ", "expected"),
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
def test_one_variable_shows_one_gpu_within_the_lists_of_the_caller(
    found: Found, number: int, environ: dict[str, str], expected: str
) -> None:
    assert module.visibility(found, number, environ) == expected


def test_a_machine_without_a_driver_answers_with_no_gpu() -> None:
    asked = subprocess.run([sys.executable, "-m", "harness.node.drivers"], capture_output=True, check=True)
    assert all(one.kind in ("cuda", "hip") for one in FOUND.decode(asked.stdout))


def test_names_are_taken_once_and_none_is_an_error() -> None:
    assert [one.name for one in module.choose_devices(("cpu", "cpu"))] == ["cpu"]
    with pytest.raises(UnknownDevice, match="use cpu"):
        module.choose_devices(())


def test_no_key_and_no_result_changing_switch_reaches_a_worker() -> None:
    source = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "AMD_SERIALIZE_KERNEL": "3",
        "TRITON_INTERPRET": "1",
        "ROCM_PATH": "/r",
    }
    found = worker_environment(interpret=False, source=source)
    assert found["PATH"] == "/bin"
    assert found["ROCM_PATH"] == "/r"
    assert not {"OPENAI_API_KEY", "AMD_SERIALIZE_KERNEL", "TRITON_INTERPRET"} & set(found)
    assert worker_environment(interpret=True, source={})["TRITON_INTERPRET"] == "1"


def kfd_node(root: Path, number: int, bus: int, device_id: int, links: dict[int, int]) -> None:
    """A GPU of the driver's topology; `links`: the other's number and the XGMI link's bandwidth."""
    folder = root / "kfd" / str(number)
    folder.mkdir(parents=True, exist_ok=True)
    facts = f"simd_count 440\nsimd_per_cu 4\ngfx_target_version 90010\ndevice_id {device_id}\ndomain 0\n"
    (folder / "properties").write_text(f"{facts}location_id {bus << 8}\n")
    for place, (other, bandwidth) in enumerate(links.items()):
        link = folder / "io_links" / str(place)
        link.mkdir(parents=True)
        (link / "properties").write_text(f"type 11\nnode_to {other}\nmax_bandwidth {bandwidth}\n")


def test_the_two_dies_of_an_mi250x_are_one_package_and_its_neighbours_are_others(node: Path) -> None:
    wide, narrow = 200_000, 50_000
    kfd_node(node, 4, 0xC1, 0x7408, {5: wide, 6: narrow})
    kfd_node(node, 5, 0xC6, 0x7408, {4: wide, 7: narrow})
    kfd_node(node, 6, 0xC9, 0x7408, {4: narrow, 7: wide})
    kfd_node(node, 7, 0xCE, 0x7408, {6: wide, 5: narrow})
    packages = [module.package_at(f"0000:{bus:02x}:00.0") for bus in (0xC1, 0xC6, 0xC9, 0xCE)]
    assert packages == ["0000:c1:00", "0000:c1:00", "0000:c9:00", "0000:c9:00"]


def test_partitions_are_one_package(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, MI300X, msgspec.structs.replace(MI300X, address="0000:c1:00.5"))
    assert [one.package for one in module.discover_devices()] == ["", "0000:c1:00", "0000:c1:00"]
