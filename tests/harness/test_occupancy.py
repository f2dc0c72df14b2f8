"""Occupancy against the tables that vendors and LLVM publish."""

from __future__ import annotations

import pytest

from harness.targets import target
from harness.worker.occupancy import occupancy

CDNA3, CDNA4, HOPPER, ADA = (target(name) for name in ("gfx942", "gfx950", "sm_90", "sm_89"))


@pytest.mark.parametrize(
    ("vgprs", "waves"),
    [(24, 8), (64, 8), (65, 7), (72, 7), (73, 6), (80, 6), (96, 5), (97, 4), (128, 4), (129, 3), (168, 3), (169, 2),
     (256, 2), (257, 1), (512, 1)],
)  # fmt: skip
def test_waves_by_registers_on_cdna3(vgprs: int, waves: int) -> None:
    """Source: LLVM's AMDGPU occupancy for 512 unified registers in granules of 8."""
    found = occupancy(CDNA3, waves_a_workgroup=4, registers=vgprs, local_bytes=0)
    assert found.waves == waves
    assert found.limit == ("waves" if waves == 8 else "vgprs")


def test_lds_limits_whole_workgroups() -> None:
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=32768)[:2] == (2.0, "lds")
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=32769)[:2] == (1.0, "lds")
    assert occupancy(CDNA3, waves_a_workgroup=8, registers=32, local_bytes=32769)[:2] == (2.0, "lds")
    assert occupancy(CDNA4, waves_a_workgroup=4, registers=32, local_bytes=32768)[:2] == (4.0, "lds")


def test_a_workgroup_that_does_not_fit_has_no_waves() -> None:
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=65537)[:2] == (0.0, "lds")
    assert occupancy(HOPPER, waves_a_workgroup=4, registers=32, local_bytes=228 * 1024)[:2] == (0.0, "shared")


def test_small_workgroups_are_limited_by_their_number() -> None:
    """16 workgroups of 2 waves are 8 waves a SIMD; of 1 wave any number goes."""
    assert occupancy(CDNA3, waves_a_workgroup=1, registers=32, local_bytes=0)[:2] == (8.0, "waves")
    assert occupancy(CDNA3, waves_a_workgroup=2, registers=32, local_bytes=0)[:2] == (8.0, "waves")


def test_many_scalar_registers_cost_a_wave() -> None:
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=0, sgprs=100).waves == 8
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=0, sgprs=106)[:2] == (7.0, "sgprs")


@pytest.mark.parametrize(
    ("registers", "warps"), [(32, 64), (33, 48), (40, 48), (64, 32), (128, 16), (168, 12), (255, 8)]
)
def test_warps_by_registers_on_hopper(registers: int, warps: int) -> None:
    """Source: NVIDIA's occupancy calculator, blocks of 128 threads."""
    assert occupancy(HOPPER, waves_a_workgroup=4, registers=registers, local_bytes=0).waves == warps


def test_warp_and_block_limits_on_nvidia() -> None:
    assert occupancy(ADA, waves_a_workgroup=4, registers=32, local_bytes=0)[:2] == (48.0, "warps")
    assert occupancy(HOPPER, waves_a_workgroup=1, registers=32, local_bytes=0)[:2] == (32.0, "blocks")
    assert occupancy(HOPPER, waves_a_workgroup=4, registers=32, local_bytes=100 * 1024)[:2] == (8.0, "shared")
