"""Protects occupancy (against published tables of vendors and LLVM) and the fit of grids to compute units and dies."""

from __future__ import annotations

import pytest

from harness.hardware.targets import target
from harness.worker.compiler.occupancy import grid_fit, occupancy

CDNA3, CDNA4, HOPPER, ADA = (target(name) for name in ("gfx942", "gfx950", "sm_90", "sm_89"))


@pytest.mark.parametrize(
    ("vgprs", "waves"),
    [(24, 8), (64, 8), (65, 7), (72, 7), (73, 6), (80, 6), (96, 5), (97, 4), (128, 4), (129, 3), (168, 3), (169, 2),
     (256, 2), (257, 1), (512, 1)],
)  # fmt: skip
def test_waves_by_registers_on_cdna3(vgprs: int, waves: int) -> None:
    """Source: LLVM's AMDGPU occupancy for 512 unified registers in granules of 8."""
    result = occupancy(CDNA3, waves_a_workgroup=4, registers=vgprs, local_bytes=0)
    assert result.waves == waves
    assert result.limit == ("waves" if waves == 8 else "vgprs")


def test_lds_limits_whole_workgroups() -> None:
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=32768)[:2] == (2.0, "lds")
    assert occupancy(CDNA3, waves_a_workgroup=4, registers=32, local_bytes=32769)[:2] == (1.0, "lds")
    assert occupancy(CDNA3, waves_a_workgroup=8, registers=32, local_bytes=32769)[:2] == (2.0, "lds")
    assert occupancy(CDNA4, waves_a_workgroup=4, registers=32, local_bytes=32768)[:2] == (4.0, "lds")


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


def test_grid_of_whole_rounds_has_no_tail() -> None:
    """An MI300X has 304 compute units on 8 dies."""
    fit = grid_fit(CDNA3, "c", (304, 2, 1), 2)
    assert (fit.rounds, fit.tail_idle, fit.idle, fit.idle_units) == (1, 0.0, 0.0, 0)
    assert (fit.die_most, fit.die_least, fit.dies) == (76, 76, 8)


def test_one_extra_workgroup_idles_the_device_for_a_round() -> None:
    fit = grid_fit(CDNA3, "c", (305, 1, 1), 1)
    assert (fit.rounds, fit.idle_units) == (2, 303)
    assert fit.tail_idle == pytest.approx(303 / 304)
    assert (fit.die_most, fit.die_least) == (39, 38)


def test_grid_fit_of_large_matmul_on_mi300x() -> None:
    """4096 x 4096 in tiles of 128 gives 1024 workgroups: 128 for a die's 38 compute units, 3 rounds and 14 more."""
    fit = grid_fit(CDNA3, "square", (32, 32, 1), 1)
    assert (fit.workgroups, fit.rounds, fit.die_most) == (1024, 4, 128)
    assert fit.tail_idle == pytest.approx(1 - 8 * 14 / 304)
    assert fit.idle == pytest.approx(1 - 1024 / (4 * 304))
