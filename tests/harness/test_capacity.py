"""Protects the rule of slots: how many candidates one GPU judges at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import Device, DevicePool, Identity
from harness.processes.gpus import capacity
from harness.processes.gpus.capacity import USUAL_CASE_BYTES, largest_case_bytes, slots_of
from suites import load_task

GIB = 1 << 30


def gpu(memory_gib: float | None, name: str = "0") -> Device:
    memory_bytes = None if memory_gib is None else int(memory_gib * GIB)
    return Device(name=name, kind="cuda", identity=Identity(model="X", memory_bytes=memory_bytes))


def test_large_gpu_with_sixteen_cores_judges_more_than_two() -> None:
    assert slots_of(gpu(139.8), gpus=1, cores=16) == 7
    assert slots_of(gpu(79.6), gpus=1, cores=16) == 4


def test_without_timing_a_gpu_judges_more() -> None:
    recorded = capacity.RECORDED_CASE_BYTES
    assert slots_of(gpu(79.6), gpus=1, cores=16, case_bytes=recorded, timed=False) == 14
    assert slots_of(gpu(79.6), gpus=1, cores=16, case_bytes=recorded) < 14


def test_gpus_of_a_node_share_its_cores() -> None:
    assert slots_of(gpu(191), gpus=8, cores=128) == 7
    assert slots_of(gpu(191), gpus=8, cores=64) == 3
    assert slots_of(gpu(191), gpus=8, cores=16) == capacity.LEAST, "one is prepared while one is timed"
    assert slots_of(gpu(288), gpus=1, cores=256) == capacity.MOST


def test_larger_cases_mean_fewer_slots_and_never_none() -> None:
    counts = [slots_of(gpu(139.8), gpus=1, cores=32, case_bytes=size * GIB) for size in (1, 2, 4, 16)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]
    assert counts[-1] == 1
    assert slots_of(gpu(8), gpus=1, cores=32) == 1


def test_unknown_memory_means_two_slots() -> None:
    assert slots_of(gpu(None), gpus=1, cores=64) == 2


def test_largest_case_is_taken_over_all_tasks(tmp_path: Path) -> None:
    small, large = load_task("matmul_w8a8"), load_task("cross_entropy")
    assert largest_case_bytes([small]) < largest_case_bytes([large]) == largest_case_bytes([small, large])
    without_model = msgspec.structs.replace(small, folder=tmp_path)
    assert largest_case_bytes([without_model]) == largest_case_bytes([]) == USUAL_CASE_BYTES


def test_pool_has_slots_by_the_rule_and_devices_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harness.processes.pool.choose_devices", lambda names: tuple(gpu(139.8, name) for name in names)
    )
    monkeypatch.setattr("harness.processes.pool.own_cores", lambda: 16)
    assert DevicePool(("0",)).slots == 7
    assert DevicePool(("0", "1")).slots == 6
    assert [device.name for device in DevicePool(("0", "1"))._places[:4]] == ["0", "1", "0", "1"]
