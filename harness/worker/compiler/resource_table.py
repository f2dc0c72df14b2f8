"""The resource table of one candidate and target: a row for each distinct binary and config of its launches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import msgspec
from triton.runtime.errors import OutOfResources

from harness.wire.device import Target
from harness.wire.evaluation import GridFit, KernelResources
from harness.worker.kit import binaries
from harness.worker.kit.binaries import Resources

from .capture import ForeignOption, Launch
from .occupancy import Occupancy, grid_fit, occupancy


def table(
    launches: Sequence[tuple[str, Launch]], target: Target, failure: Callable[[Launch], str]
) -> tuple[KernelResources, ...]:
    """
    The rows of launches, each given with its case; configs of autotuned kernels that do not compile or fit are among them.

    The same code for several cases or grids is one row. `failure` puts into words why a launch failed.
    """
    rows: dict[tuple[object, ...], KernelResources] = {}
    places: dict[tuple[object, ...], int] = {}
    for case, launch in launches:
        if launch.compiled is None:
            if launch.autotune_index is not None and not isinstance(launch.failure, ForeignOption):
                key: tuple[object, ...] = (launch.kernel, launch.autotune_index, *launch.config.items())
                rows.setdefault(key, _failed(case, launch, failure(launch)))
            continue
        key = (id(launch.compiled), launch.autotune_index)
        if key not in rows:
            rows[key], places[key] = _compiled(case, launch, target, failure(launch))
        rows[key] = _fitted(rows[key], case, launch, target, places[key])
    return tuple(rows.values())


def _failed(case: str, launch: Launch, why: str) -> KernelResources:
    return KernelResources(
        kernel=launch.kernel,
        case=case,
        config=launch.config,
        autotune_index=launch.autotune_index,
        binary="",
        binary_sha256="",
        grid=launch.grid,
        notes=launch.notes,
        flags=("failed",),
        failure=why,
    )


def _compiled(case: str, launch: Launch, target: Target, why: str) -> tuple[KernelResources, int]:
    """The row, and how many workgroups a compute unit holds."""
    metadata = launch.compiled.metadata
    found, binary = _read(launch, target)
    fit = _occupancy(found, launch, target)
    row = KernelResources(
        kernel=launch.kernel,
        case=case,
        config=launch.config,
        autotune_index=launch.autotune_index,
        binary=found.binary,
        binary_sha256=hashlib.sha256(binary).hexdigest(),
        code_sha256=binaries.code_digest(binary),
        grid=launch.grid,
        vgprs=found.vgprs,
        agprs=found.agprs,
        sgprs=found.sgprs,
        registers=found.registers,
        vgpr_spills=found.vgpr_spills,
        sgpr_spills=found.sgpr_spills,
        spill_bytes=found.spill_bytes,
        scratch_bytes=found.scratch_bytes,
        lds_bytes=metadata.shared,
        occupancy=fit.waves if fit else None,
        occupancy_limit=fit.limit if fit else None,
        matrix_instructions=found.matrix_instructions,
        load_widths=found.load_widths,
        local_loads=found.local_loads,
        tile_loads=found.tile_loads,
        compile_seconds=launch.seconds,
        notes=launch.notes,
        flags=_flags(found, launch),
        failure=why,
    )
    return row, fit.workgroups if fit else 0


def _read(launch: Launch, target: Target) -> tuple[Resources, bytes]:
    compiled = launch.compiled
    if target.backend == "hip":
        binary = compiled.asm["hsaco"]
        found = binaries.from_hip(compiled.asm["amdgcn"], binary)
    else:
        binary = compiled.asm["cubin"]
        found = binaries.from_cuda(compiled.asm["ptx"], binary, launch.log)
    if found.binary != target.name:
        raise RuntimeError(f"compiled for {found.binary}, asked for {target.name}")
    return found, binary


def _occupancy(found: Resources, launch: Launch, target: Target) -> Occupancy | None:
    registers = found.vgprs if target.backend == "hip" else found.registers
    if registers is None:
        return None
    return occupancy(
        target,
        waves_a_workgroup=launch.compiled.metadata.num_warps,
        registers=registers,
        local_bytes=launch.compiled.metadata.shared,
        sgprs=found.sgprs or 0,
    )


def _flags(found: Resources, launch: Launch) -> tuple[str, ...]:
    flags = []
    if found.vgpr_spills or found.spill_bytes:
        flags.append("spills")
    if isinstance(launch.failure, OutOfResources):
        flags.append("too_large")
    elif launch.failure is not None:
        flags.append("failed")
    return tuple(flags)


def _fitted(
    row: KernelResources, case: str, launch: Launch, target: Target, per_unit: int
) -> KernelResources:
    fit: GridFit | None = None
    if launch.grid is not None and launch.failure is None:
        fit = grid_fit(target, case, launch.grid, per_unit)
    if fit is None or any((fit.case, fit.grid) == (known.case, known.grid) for known in row.fits):
        return row
    return msgspec.structs.replace(row, fits=(*row.fits, fit))
