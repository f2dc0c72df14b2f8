"""Makes the resource table of one candidate and target: one row for each distinct binary and config."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from triton import OutOfResources

from harness.wire.device import Target
from harness.wire.results.evaluation import KernelResources
from harness.worker.kit import binaries
from harness.worker.kit.binaries import Resources

from .capture import CompiledLaunch, ForeignOption
from .occupancy import Occupancy, grid_fit, occupancy


def table(
    launches: Sequence[tuple[str, CompiledLaunch]], target: Target, failure: Callable[[CompiledLaunch], str]
) -> tuple[tuple[KernelResources, ...], tuple[Mapping[str, Any] | None, ...]]:
    """
    The rows for pairs of case and launch, including configs of autotuned kernels that do not compile or fit, and Triton's texts
    of each row.

    Equal code for several cases or grids is one row. `failure` says in words why a launch failed.
    """
    rows: dict[tuple[object, ...], KernelResources] = {}
    texts: dict[tuple[object, ...], Mapping[str, Any]] = {}
    per_unit: dict[tuple[object, ...], int] = {}
    for case, launch in launches:
        if launch.compiled is None:
            if launch.autotune_index is not None and not isinstance(launch.failure, ForeignOption):
                key: tuple[object, ...] = (launch.kernel, launch.autotune_index, *launch.config.items())
                rows.setdefault(key, _row(case, launch, ("failed",), failure(launch)))
            continue
        key = (id(launch.compiled), launch.autotune_index)
        if key not in rows:
            rows[key], per_unit[key] = _compiled(case, launch, target, failure(launch))
            texts[key] = launch.compiled.asm
        rows[key] = _add_grid(rows[key], case, launch, target, per_unit[key])
    return tuple(rows.values()), tuple(map(texts.get, rows))


def _row(case: str, launch: CompiledLaunch, flags: tuple[str, ...], why: str) -> KernelResources:
    """Return the row of a launch without facts of its binary: all that is known if it did not compile."""
    return KernelResources(
        kernel=launch.kernel,
        case=case,
        config=launch.config,
        autotune_index=launch.autotune_index,
        autotune_config=launch.autotune_config,
        architecture="",
        binary_sha256="",
        grid=launch.grid,
        notes=launch.notes,
        flags=flags,
        failure=why,
    )


def _compiled(case: str, launch: CompiledLaunch, target: Target, why: str) -> tuple[KernelResources, int]:
    """Return the row of a compiled launch, and how many of its workgroups fit on a compute unit, 0 if that is unknown.

    `why` is its failure, empty without one. Raises like `_read`.
    """
    resources, binary = _read(launch, target)
    fit = _occupancy(resources, launch, target)
    counts, code = resources._asdict(), resources.code
    del counts["threads"]
    row = msgspec.structs.replace(
        _row(case, launch, _flags(resources, launch), why),
        **counts,
        load_widths=code.loads,
        local_loads=code.past_registers,
        tile_loads=None if target.backend == "hip" else code.tile_loads,
        matrix_instructions=code.matrix,
        binary_sha256=hashlib.sha256(binary).hexdigest(),
        code_sha256=binaries.code_digest(binary),
        lds_bytes=launch.compiled.metadata.shared,
        occupancy=fit.waves if fit else None,
        occupancy_limit=fit.limit if fit else None,
        compile_seconds=launch.seconds,
    )
    return row, fit.workgroups if fit else 0


def _read(launch: CompiledLaunch, target: Target) -> tuple[Resources, bytes]:
    """Return a kernel's resources and its binary. Raises `RuntimeError` if the binary is for another target."""
    assembly = launch.compiled.asm
    if target.backend == "hip":
        binary = assembly["hsaco"]
        resources = binaries.from_hip(assembly["amdgcn"], binary)
    else:
        binary = assembly["cubin"]
        resources = binaries.from_cuda(assembly["ptx"], binary, launch.log)
    if resources.architecture != target.name:
        raise RuntimeError(f"compiled for {resources.architecture}, asked for {target.name}")
    return resources, binary


def _occupancy(resources: Resources, launch: CompiledLaunch, target: Target) -> Occupancy | None:
    """Return the occupancy of a kernel; `None` if its number of registers is not known."""
    registers = resources.vgprs if target.backend == "hip" else resources.registers
    if registers is None:
        return None
    metadata = launch.compiled.metadata
    return occupancy(
        target,
        waves_a_workgroup=metadata.num_warps,
        registers=registers,
        local_bytes=metadata.shared,
        sgprs=resources.sgprs or 0,
    )


def _flags(resources: Resources, launch: CompiledLaunch) -> tuple[str, ...]:
    """Return the flags of a launch: `spills`, and `too_large` or `failed` if no device can run it."""
    flags = []
    if resources.vgpr_spills or resources.spill_bytes:
        flags.append("spills")
    if isinstance(launch.failure, OutOfResources):
        flags.append("too_large")
    elif launch.failure is not None:
        flags.append("failed")
    return tuple(flags)


def _add_grid(
    row: KernelResources, case: str, launch: CompiledLaunch, target: Target, per_unit: int
) -> KernelResources:
    """Return a row that also says how this case's grid fills the device; unchanged if that is unknown or listed already."""
    if launch.grid is None or launch.failure is not None:
        return row
    fit = grid_fit(target, case, launch.grid, per_unit)
    if fit is None or any((fit.case, fit.grid) == (known.case, known.grid) for known in row.fits):
        return row
    return msgspec.structs.replace(row, fits=(*row.fits, fit))
