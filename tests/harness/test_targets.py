"""The table of targets: names, hints, and facts that bear on each other."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.errors import UnknownTarget
from harness.targets import DEFAULT_TARGET, Hardware, hardware, target, targets


def test_known_targets_are_found_by_name() -> None:
    assert [one.name for one in targets()][:3] == ["gfx942", "gfx90a", "gfx950"]
    assert all(target(one.name) == one for one in targets())
    assert target(DEFAULT_TARGET).wave_size == 64
    assert target("sm_90").backend == "cuda"


@pytest.mark.parametrize(("typed", "meant"), [("gfx924", "gfx942"), ("sm90", "sm_90"), ("gfx90", "gfx90a")])
def test_an_unknown_target_offers_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UnknownTarget, match=meant) as raised:
        target(typed)
    assert "\n" not in str(raised.value)


def test_an_unknown_target_far_from_all_lists_them() -> None:
    with pytest.raises(UnknownTarget, match=r"known: gfx942, gfx90a"):
        target("tpu")


def test_every_number_has_a_source() -> None:
    for one in targets():
        facts = hardware(one)
        assert set(facts.sources) == set(Hardware.__struct_fields__) - {"name", "sources"}
        assert all(facts.sources.values())


def test_facts_bear_on_each_other() -> None:
    """Peaks from the sheet against units, clock and operations a cycle: CDNA3 does 2,048 fp16 FLOPs a CU and clock."""
    facts = hardware(target("gfx942"))
    assert facts.matrix_flops["float16"] == pytest.approx(
        facts.compute_units * 2048 * facts.boost_mhz * 1e6, rel=1e-3
    )
    assert facts.compute_units % facts.dies == 0
    for one in targets():
        facts = hardware(one)
        assert facts.matrix_flops["int8"] >= facts.matrix_flops["float16"] > facts.vector_flops["float32"]
        assert facts.local_bytes_workgroup <= facts.local_bytes


def test_targets_need_neither_torch_nor_triton() -> None:
    code = "import harness.targets, harness.estimate, harness.worker.compiler.occupancy, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "triton", "numpy"} & set(done.stdout.split())
