"""How many waves of a kernel a device holds at once, what limits them, and how a grid fills it. Torch-free arithmetic."""

from __future__ import annotations

from typing import NamedTuple

from harness.hardware.targets import Hardware, hardware
from harness.wire.device import Target
from harness.wire.evaluation import GridFit

# Scalar registers stop limiting at 100 a wave: 800 a SIMD in granules of 16 for at most 8 waves (source: LLVM
# AMDGPUBaseInfo, gfx9).
SGPRS_FOR_ALL_WAVES = 100
SGPRS_A_SIMD = 800
SGPR_GRANULE = 16


class Occupancy(NamedTuple):
    """Waves a SIMD (AMD) or warps an SM (NVIDIA) that fit."""

    waves: float
    limit: str
    """`vgprs`, `sgprs`, `lds`, `workgroups`, `waves` (AMD); `registers`, `shared`, `blocks`, `warps` (NVIDIA)."""
    workgroups: int
    """Of a compute unit or multiprocessor."""


def occupancy(
    target: Target, *, waves_a_workgroup: int, registers: int, local_bytes: int, sgprs: int = 0
) -> Occupancy:
    """
    Waves that fit on the target's reference device, whole workgroups at a time.

    `registers` are a lane's (AMD: accumulation registers included); `local_bytes` a workgroup's. A workgroup that does
    not fit at all has 0 waves.
    Where several limits are equal, the hardware's own limit of waves is told, else the first in the order above.
    """
    facts = hardware(target)
    if target.backend == "hip":
        return _amd(facts, waves_a_workgroup, registers, local_bytes, sgprs)
    return _nvidia(facts, waves_a_workgroup, registers, local_bytes, target.wave_size)


def grid_fit(target: Target, case: str, grid: tuple[int, int, int], per_unit: int) -> GridFit | None:
    """
    How the workgroups of a grid fill the target's reference device, `per_unit` of them on each compute unit at once.

    Workgroups go round robin over the dies and stay there, so the die that gets most decides how often it is filled.
    `None` for an empty grid, or where not one workgroup fits.
    """
    facts, workgroups = hardware(target), grid[0] * grid[1] * grid[2]
    if workgroups <= 0 or per_unit <= 0:
        return None
    most, least = -(-workgroups // facts.dies), workgroups // facts.dies
    units = facts.compute_units // facts.dies
    rounds = -(-most // (units * per_unit))
    full = (rounds - 1) * units * per_unit
    fuller = workgroups % facts.dies
    last = [max(most - full, 0)] * fuller + [max(least - full, 0)] * (facts.dies - fuller)
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
        idle_units=sum(max(units - of_die, 0) for of_die in last),
        dies=facts.dies,
        die_most=most,
        die_least=least,
    )


def _amd(facts: Hardware, waves: int, registers: int, local_bytes: int, sgprs: int) -> Occupancy:
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
    """Registers are handed out a warp, from four equal files, one a scheduler."""
    a_warp = _granules(registers * wave_size, facts.register_granule)
    by_registers = facts.registers // facts.simds // a_warp
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
    taken = local_bytes + facts.local_reserved_bytes
    if local_bytes > facts.local_bytes_workgroup:
        return 0
    if taken == 0:
        return facts.max_waves * facts.simds
    return facts.local_bytes // _granules(taken, facts.local_granule_bytes)


def _least(limits: dict[str, int], *, last: str) -> tuple[str, int]:
    """The tightest limit; where the hardware's own limit of waves is as tight, that one is told."""
    least = min(limits.values())
    if limits[last] == least:
        return last, least
    return next(name for name, value in limits.items() if value == least), least
