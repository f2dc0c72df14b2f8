"""Protects the meaning of `--devices`: idle GPUs by leases and load, within Slurm's list. The drivers' answers are fake."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from harness import Device
from harness.node import discovery as devices_module
from harness.node import drivers, loads
from harness.node.discovery import CPU
from harness.node.drivers import DriverGpu
from harness.node.leases import lease
from harness.node.loads import parse_nvidia, read_loads
from harness.node.selection import not_granted, select_devices, standings, targets_for, wait_for_devices
from harness.wire.errors import UnknownDevice, UnknownTarget
from harness.wire.results.latency import DeviceReading
from tests.support.judge.fake_nodes import DriversAnswer, drivers_answer, own_leases

__all__ = ["drivers_answer", "own_leases"]

GIB = 1 << 30
QUIET = DeviceReading(busy_percent=0.0, memory_used_bytes=0, other_processes=0)


def h200(number: int) -> DriverGpu:
    return DriverGpu(
        kind="cuda",
        model="NVIDIA H200",
        address=f"0000:{10 + number:02x}:00.0",
        uuid=f"GPU-{number}",
        target="sm_90",
        memory_bytes=140 * GIB,
    )


@pytest.fixture(autouse=True)
def node(drivers_answer: DriversAnswer, own_leases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node with four visible H200."""
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS"):
        monkeypatch.delenv(name, raising=False)
    drivers_answer(*map(h200, range(4)))


def load_probe(**busy: DeviceReading) -> loads.LoadProbe:
    """A probe that reports idle GPUs, except those named as `gpu0=...`."""

    def probe(devices: Sequence[Device]) -> Mapping[str, DeviceReading]:
        return {device.name: busy.get(f"gpu{device.name}", QUIET) for device in devices}

    return probe


def names(selection: str, probe: loads.LoadProbe | None = None, **environ: str) -> list[str]:
    devices = select_devices(selection.split(","), probe=probe or load_probe(), environ=environ)
    return [device.name for device in devices]


async def test_idle_skips_gpus_that_others_use() -> None:
    busy = load_probe(
        gpu0=DeviceReading(busy_percent=97.0, memory_used_bytes=0, other_processes=0),
        gpu1=DeviceReading(busy_percent=0.0, memory_used_bytes=80 * GIB, other_processes=None),
    )
    assert names("idle", busy) == ["2", "3"]
    async with lease(select_devices(["2"], environ={})[0]):
        assert names("idle", busy) == ["3"]
        (leased,) = [gpu for gpu in standings(probe=busy, environ={}) if gpu.device.name == "2"]
        assert "runs on it since" in leased.busy
    assert names("idle", load_probe(gpu0=DeviceReading(other_processes=2))) == ["1", "2", "3"]


def test_no_idle_gpu_is_an_error_with_reasons_and_alternatives() -> None:
    full = load_probe(**{f"gpu{number}": DeviceReading(busy_percent=50.0) for number in range(4)})
    with pytest.raises(UnknownDevice, match=r"GPU 0: 50 % busy.*--devices all.*--devices cpu"):
        names("idle", full)
    assert names("all", full) == ["0", "1", "2", "3"]
    assert names("2,0", full) == ["2", "0"]


async def test_lone_evaluation_waits_for_an_idle_gpu_and_hears_for_whom() -> None:
    full = load_probe(**{f"gpu{number}": DeviceReading(busy_percent=50.0) for number in (0, 1, 2)})
    heard: list[str] = []
    waits = asyncio.Event()

    def hear(busy: str) -> None:
        heard.append(busy)
        waits.set()

    async with lease(select_devices(["3"], environ={})[0]):
        choosing = asyncio.create_task(wait_for_devices(["idle"], on_wait=hear, probe=full, poll_s=0.01))
        await waits.wait()
        assert not choosing.done()
    assert [device.name for device in await choosing] == ["3"]
    assert "GPU 3: a process of" in heard[0]


def test_machine_without_gpu_selects_cpu(
    drivers_answer: DriversAnswer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers_answer()
    monkeypatch.setattr(devices_module, "_NVIDIA_GPUS", tmp_path / "missing")
    monkeypatch.setattr(drivers, "KFD_NODES", tmp_path / "missing")
    assert names("idle") == names("all") == names("cpu") == ["cpu"]


def test_unknown_load_counts_as_idle_and_is_named() -> None:
    def silent(devices: Sequence[Device]) -> Mapping[str, DeviceReading]:
        return {}

    assert names("idle", silent) == ["0", "1", "2", "3"]
    assert standings(probe=silent, environ={})[0].unseen == "load, memory, other processes"


@pytest.mark.parametrize(
    ("selection", "slurm", "seen", "chosen"),
    [
        ("idle", {"SLURM_JOB_GPUS": "2-3"}, range(4), "2 3"),
        ("all", {"SLURM_STEP_GPUS": "2-3"}, range(4), "2 3"),
        ("cpu", {"SLURM_JOB_GPUS": "2-3"}, range(4), "cpu"),
        ("all", {"SLURM_JOB_GPUS": "0,1,2", "SLURM_STEP_GPUS": "1"}, range(4), "1"),
        ("all", {"SLURM_JOB_GPUS": "2,3"}, (2, 3), "0 1"),  # a control group hides the others, and numbers are the node's
    ],
)  # fmt: skip
def test_gpu_outside_slurm_list_is_never_used(
    drivers_answer: DriversAnswer, selection: str, slurm: dict[str, str], seen: Sequence[int], chosen: str
) -> None:
    drivers_answer(*map(h200, seen))
    assert names(selection, **slurm) == chosen.split()


def test_visible_list_and_slurm_list_are_intersected(drivers_answer: DriversAnswer) -> None:
    """As with CUDA_VISIBLE_DEVICES=1,2 and no other limit."""
    slurm = {"SLURM_JOB_GPUS": "2,3"}
    assert [device.name for device in not_granted(slurm)] == ["0", "1"]
    drivers_answer(h200(1), h200(2), reachable=tuple(map(h200, range(4))))
    assert [device.address for device in select_devices(["all"], environ=slurm)] == [h200(2).address]


@pytest.mark.parametrize(
    ("selection", "slurm", "problem"),
    [
        ("0", "2-3", "Slurm did not give GPU 0 to this job; its GPUs here: 2, 3"),
        ("all", "gpu:2", "is no list of GPU numbers"),
        ("all", "1,,2", "is no list of GPU numbers"),
        ("all", "a-b", "is no list of GPU numbers"),
        ("idle,0", "0-3", "idle stands for several devices"),
        ("9", "0-3", "no device '9'"),
    ],
)
def test_selection_that_gives_nothing_is_an_error(selection: str, slurm: str, problem: str) -> None:
    with pytest.raises(UnknownDevice, match=problem):
        names(selection, SLURM_JOB_GPUS=slurm)


def test_nvidia_smi_tables_are_read_by_address() -> None:
    gpus = "00000000:0A:00.0, 37, 1234\n00000000:0B:00.0, [N/A], [N/A]\nno table\n"
    loads_by_address = parse_nvidia(gpus, "00000000:0A:00.0, 17\n00000000:0A:00.0, 18\n")
    assert loads_by_address["0000:0a:00.0"] == DeviceReading(37.0, 1234 << 20, 2)
    assert loads_by_address["0000:0b:00.0"] == DeviceReading(None, None, 0)
    assert parse_nvidia(gpus, None)["0000:0a:00.0"].other_processes is None
    assert parse_nvidia(None, None) == {}


def write_files(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def amdgpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Driver files of an MI300X at c1:00.0 with one process."""
    monkeypatch.setattr(
        drivers,
        "PCI_DEVICES",
        write_files(
            tmp_path / "pci",
            {"0000:c1:00.0/gpu_busy_percent": "12\n", "0000:c1:00.0/mem_info_vram_used": f"{3 * GIB}\n"},
        ),
    )
    nodes = {"2/gpu_id": "41\n", "2/properties": "simd_count 1216\ndomain 0\nlocation_id 49408\n"}
    monkeypatch.setattr(drivers, "KFD_NODES", write_files(tmp_path / "nodes", nodes))
    processes = {"100/vram_41": "4096\n", "101/vram_41": "0\n", "101/vram_42": "4096\n"}
    monkeypatch.setattr(loads, "_KFD_PROCESSES", write_files(tmp_path / "proc", processes))


@pytest.mark.usefixtures("amdgpu")
def test_amd_load_comes_from_driver_files_of_the_package() -> None:
    whole = Device(name="0", kind="hip", address="0000:c1:00.0")
    partition = Device(name="1", kind="hip", address="0000:c1:00.1")
    elsewhere = Device(name="2", kind="hip", address="0000:c2:00.0")
    loads_by_name = read_loads([whole, partition, elsewhere])
    assert loads_by_name["0"] == DeviceReading(12.0, 3 * GIB, 1)
    assert loads_by_name["1"] == DeviceReading(12.0, 3 * GIB, None)
    assert loads_by_name["2"] == DeviceReading()


@pytest.mark.parametrize(
    ("device_targets", "requested", "targets"),
    [
        ((), (), ["gfx942"]),
        (("sm_90", "sm_90"), (), ["sm_90"]),
        (("gfx90a", "gfx942", "gfx90a"), (), ["gfx90a", "gfx942"]),
        (("sm_90",), ("gfx942", "sm_90", "gfx942"), ["gfx942", "sm_90"]),
        ((), ("gfx950",), ["gfx950"]),
    ],
)
def test_compile_targets_are_of_devices_unless_requested(
    device_targets: tuple[str, ...], requested: tuple[str, ...], targets: list[str]
) -> None:
    gpus = [Device(name=str(number), kind="gpu", target=name) for number, name in enumerate(device_targets)]
    assert [result.name for result in targets_for(gpus or [CPU], requested)] == targets


@pytest.mark.parametrize(("typed", "nearest"), [("gfx924", "gfx942"), ("sm90", "sm_90"), ("gfx90", "gfx90a")])
def test_unknown_target_error_names_the_nearest(typed: str, nearest: str) -> None:
    with pytest.raises(UnknownTarget, match=f"did you mean .*{nearest}") as raised:
        targets_for([CPU], (typed,))
    assert "\n" not in str(raised.value)
