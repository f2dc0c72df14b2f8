"""Computes a kernel's occupancy, what limits it, and how a grid fills the device. Torch-free."""

from __future__ import annotations

from typing import NamedTuple

from harness.hardware.targets import Hardware, hardware
from harness.wire.device import Target
from harness.wire.results.evaluation import GridFit

# Scalar registers stop limiting at 100 a wave: 800 a SIMD in granules of 16 for at most 8 waves (source: LLVM
# AMDGPUBaseInfo, gfx9).
SGPRS_FOR_ALL_WAVES = 100
SGPRS_A_SIMD = 800
SGPR_GRANULE = 16


class Occupancy(NamedTuple):
    """How much of a kernel fits on one compute unit or SM."""

    waves: float
    """Waves per SIMD (AMD) or warps per SM (NVIDIA)."""
    limit: str
    """`vgprs`, `sgprs`, `lds`, `workgroups`, `waves` (AMD); `registers`, `shared`, `blocks`, `warps` (NVIDIA)."""
    workgroups: int
    """Per compute unit or SM."""


def occupancy(
    target: Target, *, waves_a_workgroup: int, registers: int, local_bytes: int, sgprs: int = 0
) -> Occupancy:
    """The occupancy on the target's reference device, in whole workgroups; 0 waves if not even one workgroup fits.

    `registers`: per lane (AMD: accumulation registers included). `local_bytes`: per workgroup.
    """
    facts = hardware(target)
    if target.backend == "hip":
        return _amd(facts, waves_a_workgroup, registers, local_bytes, sgprs)
    return _nvidia(facts, waves_a_workgroup, registers, local_bytes, target.wave_size)


def grid_fit(target: Target, case: str, grid: tuple[int, int, int], per_unit: int) -> GridFit | None:
    """How a grid fills the target's reference device, with `per_unit` workgroups on each compute unit at once.

    Workgroups are dealt round robin to the dies and stay there, so the die with the most workgroups decides the rounds.
    `None` for an empty grid, or if not even one workgroup fits.
    """
    facts, workgroups = hardware(target), grid[0] * grid[1] * grid[2]
    if workgroups <= 0 or per_unit <= 0:
        return None
    most, least = -(-workgroups // facts.dies), workgroups // facts.dies
    units = facts.compute_units // facts.dies
    rounds = -(-most // (units * per_unit))
    full = (rounds - 1) * units * per_unit
    dies_with_most = workgroups % facts.dies
    last = [max(most - full, 0)] * dies_with_most + [max(least - full, 0)] * (facts.dies - dies_with_most)
    places = units * per_unit * facts.dies
    return GridFit(
        case=case,
        grid=grid,
        workgroups=workgroups,
        compute_units=facts.compute_units,
        per_unit=per_unit,
        rounds=rounds,
        tail_idle=1 - sum(last) / places,
        idle=1 - workgroups / (places * rounds),
        idle_units=sum(max(units - on_die, 0) for on_die in last),
        dies=facts.dies,
        die_most=most,
        die_least=least,
    )


def _amd(facts: Hardware, waves: int, registers: int, local_bytes: int, sgprs: int) -> Occupancy:
    """Return how many waves of a kernel fit on a SIMD, and which limit decides: registers, scalar registers, LDS or waves.

    `waves` are those of a workgroup. At equal numbers the limit of waves itself is named last.
    """
    by_registers = facts.registers // _granules(registers, facts.register_granule)
    by_scalars = facts.max_waves
    if sgprs > SGPRS_FOR_ALL_WAVES:
        by_scalars = SGPRS_A_SIMD // _granules(sgprs, SGPR_GRANULE)
    limits = {
        "vgprs": _workgroups(by_registers, facts.simds, waves),
        "sgprs": _workgroups(by_scalars, facts.simds, waves),
        "lds": _by_local(facts, local_bytes),
        "workgroups": facts.max_workgroups if waves > 1 else facts.max_waves * facts.simds,
        "waves": _workgroups(facts.max_waves, facts.simds, waves),
    }
    limit, workgroups = _least(limits, last="waves")
    return Occupancy(workgroups * waves / facts.simds, limit, workgroups)


def _nvidia(facts: Hardware, warps: int, registers: int, local_bytes: int, wave_size: int) -> Occupancy:
    """An SM has four schedulers with a register file each; registers are allocated per warp."""
    per_warp = _granules(registers * wave_size, facts.register_granule)
    by_registers = facts.registers // facts.simds // per_warp
    limits = {
        "registers": _workgroups(by_registers, facts.simds, warps),
        "shared": _by_local(facts, local_bytes),
        "blocks": facts.max_workgroups,
        "warps": facts.max_waves // warps,
    }
    limit, blocks = _least(limits, last="warps")
    return Occupancy(float(blocks * warps), limit, blocks)


def _granules(amount: int, granule: int) -> int:
    return max(-(-amount // granule), 1) * granule


def _workgroups(waves_a_simd: int, simds: int, waves: int) -> int:
    return waves_a_simd * simds // waves


def _by_local(facts: Hardware, local_bytes: int) -> int:
    """Return how many workgroups the local memory of a compute unit holds; 0 if not even one fits."""
    total_bytes = local_bytes + facts.local_reserved_bytes
    if local_bytes > facts.local_bytes_workgroup:
        return 0
    if total_bytes == 0:
        return facts.max_waves * facts.simds
    return facts.local_bytes // _granules(total_bytes, facts.local_granule_bytes)


def _least(limits: dict[str, int], *, last: str) -> tuple[str, int]:
    """The tightest limit. Of equal limits: the hardware's limit of waves (`last`), else the first."""
    least = min(limits.values())
    if limits[last] == least:
        return last, least
    return next(name for name, value in limits.items() if value == least), least
