"""Protects the rule of slots: how many candidates one GPU judges at once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness import Device, DevicePool, Identity
from harness.processes.gpus import capacity
from harness.processes.gpus.capacity import USUAL_CASE_BYTES, largest_case_bytes, slots_of
from harness.wire.results.provenance import Provenance
from suites import load_task
from tests.support.judge.fake_nodes import IdleNode, idle_node, own_leases

__all__ = ["idle_node", "own_leases"]

GIB = 1 << 30


def gpu(memory_gib: float | None, name: str = "0") -> Device:
    memory_bytes = None if memory_gib is None else int(memory_gib * GIB)
    return Device(name=name, kind="cuda", identity=Identity(model="X", memory_bytes=memory_bytes))


@pytest.mark.parametrize(
    ("memory_gib", "gpus", "cores", "slots"),
    [
        (139.8, 1, 16, 7),
        (79.6, 1, 16, 4),
        (191, 8, 128, 7),  # the GPUs of a node share its cores
        (191, 8, 64, 3),
        (191, 8, 16, capacity.LEAST),  # one is prepared while one is timed
        (288, 1, 256, capacity.MOST),
        (None, 1, 64, 2),
    ],
)
def test_slots_follow_from_memory_and_cores(
    memory_gib: float | None, gpus: int, cores: int, slots: int
) -> None:
    assert slots_of(gpu(memory_gib), gpus=gpus, cores=cores) == slots


def test_larger_cases_mean_fewer_slots_and_never_none() -> None:
    counts = [slots_of(gpu(139.8), gpus=1, cores=32, case_bytes=size * GIB) for size in (1, 2, 4, 16)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]
    assert counts[-1] == 1
    assert slots_of(gpu(8), gpus=1, cores=32) == 1


def test_largest_case_is_taken_over_all_tasks(tmp_path: Path) -> None:
    small, large = load_task("matmul_w8a8"), load_task("cross_entropy")
    assert largest_case_bytes([small]) < largest_case_bytes([large]) == largest_case_bytes([small, large])
    without_model = msgspec.structs.replace(small, folder=tmp_path)
    assert largest_case_bytes([without_model]) == largest_case_bytes([]) == USUAL_CASE_BYTES


def test_pool_has_slots_by_the_rule_and_devices_by_turns(
    idle_node: IdleNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle_node(gpu(139.8), gpu(139.8, "1"))
    monkeypatch.setattr("harness.processes.pool.own_cores", lambda: 16)
    assert DevicePool(("0",)).slots == 7
    assert DevicePool(("0", "1")).slots == 6
    assert [device.name for device in DevicePool(("0", "1"))._places[:4]] == ["0", "1", "0", "1"]


async def test_pool_asks_once_which_graphs_work_on_a_gpu(idle_node: IdleNode) -> None:
    idle_node(gpu(80.0))
    provenances: list[Provenance] = []

    def trusted_graphs(provenance: Provenance) -> int:
        provenances.append(provenance)
        return 64

    pool = DevicePool(("0",), trusted_graphs=trusted_graphs)
    assert [await pool.graph_nodes(pool.devices[0]) for _ in range(2)] == [64, 64]
    assert len(provenances) == 1
    assert await DevicePool(("0",)).graph_nodes(pool.devices[0]) is None
