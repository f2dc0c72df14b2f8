"""Targets that can be compiled for, and the hardware facts behind estimates and occupancy, each with its source."""

from __future__ import annotations

import difflib

import msgspec

from .device import Target
from .errors import UnknownTarget

KIB = 1024
MIB = 1024 * KIB

ROCM_SPECS = "ROCm documentation, AMD GPU specifications"
MI300X_SHEET = "AMD Instinct MI300X data sheet"
MI250X_SHEET = "AMD Instinct MI250X data sheet, halved: a device is one of the package's two dies"
MI355X_SHEET = "AMD Instinct MI355X data sheet"
A100_SHEET = "NVIDIA A100 data sheet"
H100_SHEET = "NVIDIA H100 data sheet, SXM5"
L40S_SHEET = "NVIDIA L40S data sheet"
B200_SHEET = "NVIDIA HGX B200 data sheet, an eighth of the board"
LLVM_AMDGPU = "LLVM AMDGPU back end (AMDGPUBaseInfo, AMDGPUUsage)"
CUDA_GUIDE = "CUDA C++ programming guide, technical specifications by compute capability"


class Hardware(msgspec.Struct, frozen=True):
    """
    The reference device of a target: what estimates and occupancy are worked out with.

    Peaks are the vendor's, dense (no structured sparsity), at boost clock: no kernel reaches them.
    """

    name: str
    compute_units: int
    """Compute units (AMD) or streaming multiprocessors (NVIDIA) of one device."""
    dies: int
    """Accelerator complex dies (XCDs) over which workgroups go round-robin; 1 where there is one."""
    simds: int
    """SIMDs of a compute unit, or warp schedulers of a multiprocessor."""
    local_bytes: int
    """Local (shared) memory of a compute unit."""
    local_bytes_workgroup: int
    """The most of it that one workgroup may have."""
    local_granule_bytes: int
    """Local memory is handed out in multiples of this."""
    local_reserved_bytes: int
    """Taken from each workgroup by the system."""
    registers: int
    """Vector registers a lane of one SIMD (AMD), or 32-bit registers of a multiprocessor (NVIDIA)."""
    register_granule: int
    """Registers are handed out in multiples of this: a lane (AMD), a warp (NVIDIA)."""
    max_registers: int
    """The most that one lane can address."""
    max_waves: int
    """Waves a SIMD (AMD) or warps a multiprocessor (NVIDIA)."""
    max_workgroups: int
    """Workgroups of more than one wave a compute unit holds, or blocks a multiprocessor holds."""
    boost_mhz: int
    memory_bytes: int
    memory_bytes_per_s: float
    """Peak bandwidth of device memory."""
    l2_bytes: int
    """Second-level cache, all dies together."""
    last_level_bytes: int
    """Memory-side cache behind it; 0 where there is none."""
    matrix_flops: dict[str, float]
    """Peak of the matrix units by the dtype of the operands, FLOPs (or integer operations) a second."""
    vector_flops: dict[str, float]
    """Peak of the vector units by dtype."""
    sources: dict[str, str]
    """Where the numbers come from, by field."""


def _sources(*, sheet: str, limits: str, caches: str) -> dict[str, str]:
    return {
        "compute_units": caches,
        "dies": caches,
        "simds": limits,
        "local_bytes": limits if caches == sheet else caches,
        "local_bytes_workgroup": limits,
        "local_granule_bytes": limits,
        "local_reserved_bytes": limits,
        "registers": limits,
        "register_granule": limits,
        "max_registers": limits,
        "max_waves": limits,
        "max_workgroups": limits,
        "boost_mhz": sheet,
        "memory_bytes": sheet,
        "memory_bytes_per_s": sheet,
        "l2_bytes": caches,
        "last_level_bytes": caches,
        "matrix_flops": sheet,
        "vector_flops": sheet,
    }


def _tera(**peaks: float) -> dict[str, float]:
    return {name: value * 1e12 for name, value in peaks.items()}


def _cdna(
    *,
    name: str,
    compute_units: int,
    dies: int,
    local_bytes: int,
    local_granule_bytes: int,
    boost_mhz: int,
    memory_gib: int,
    memory_tb_per_s: float,
    l2_bytes: int,
    last_level_bytes: int,
    matrix_flops: dict[str, float],
    vector_flops: dict[str, float],
    sheet: str,
) -> Hardware:
    return Hardware(
        name=name,
        compute_units=compute_units,
        dies=dies,
        simds=4,
        local_bytes=local_bytes,
        local_bytes_workgroup=local_bytes,
        local_granule_bytes=local_granule_bytes,
        local_reserved_bytes=0,
        registers=512,
        register_granule=8,
        max_registers=512,
        max_waves=8,
        max_workgroups=16,
        boost_mhz=boost_mhz,
        memory_bytes=memory_gib << 30,
        memory_bytes_per_s=memory_tb_per_s * 1e12,
        l2_bytes=l2_bytes,
        last_level_bytes=last_level_bytes,
        matrix_flops=matrix_flops,
        vector_flops=vector_flops,
        sources=_sources(sheet=sheet, limits=LLVM_AMDGPU, caches=ROCM_SPECS),
    )


def _nvidia(
    *,
    name: str,
    multiprocessors: int,
    shared_kib: int,
    max_warps: int,
    max_blocks: int,
    boost_mhz: int,
    memory_gb: int,
    memory_tb_per_s: float,
    l2_bytes: int,
    matrix_flops: dict[str, float],
    vector_flops: dict[str, float],
    sheet: str,
) -> Hardware:
    return Hardware(
        name=name,
        compute_units=multiprocessors,
        dies=1,
        simds=4,
        local_bytes=shared_kib * KIB,
        local_bytes_workgroup=(shared_kib - 1) * KIB,
        local_granule_bytes=128,
        local_reserved_bytes=KIB,
        registers=65536,
        register_granule=256,
        max_registers=255,
        max_waves=max_warps,
        max_workgroups=max_blocks,
        boost_mhz=boost_mhz,
        memory_bytes=memory_gb * 10**9,
        memory_bytes_per_s=memory_tb_per_s * 1e12,
        l2_bytes=l2_bytes,
        last_level_bytes=0,
        matrix_flops=matrix_flops,
        vector_flops=vector_flops,
        sources=_sources(sheet=sheet, limits=CUDA_GUIDE, caches=sheet),
    )


_TABLE: dict[str, tuple[Target, Hardware]] = {
    "gfx942": (
        Target(name="gfx942", backend="hip", wave_size=64),
        _cdna(
            name="MI300X",
            compute_units=304,
            dies=8,
            local_bytes=64 * KIB,
            local_granule_bytes=512,
            boost_mhz=2100,
            memory_gib=192,
            memory_tb_per_s=5.3,
            l2_bytes=32 * MIB,
            last_level_bytes=256 * MIB,
            matrix_flops=_tera(
                float64=163.4,
                float32=163.4,
                tf32=653.7,
                float16=1307.4,
                bfloat16=1307.4,
                float8=2614.9,
                int8=2614.9,
            ),
            vector_flops=_tera(float64=81.7, float32=163.4),
            sheet=MI300X_SHEET,
        ),
    ),
    "gfx90a": (
        Target(name="gfx90a", backend="hip", wave_size=64),
        _cdna(
            name="MI250X (one die)",
            compute_units=110,
            dies=1,
            local_bytes=64 * KIB,
            local_granule_bytes=512,
            boost_mhz=1700,
            memory_gib=64,
            memory_tb_per_s=1.6384,
            l2_bytes=8 * MIB,
            last_level_bytes=0,
            matrix_flops=_tera(float64=47.85, float32=47.85, float16=191.5, bfloat16=191.5, int8=191.5),
            vector_flops=_tera(float64=23.95, float32=23.95),
            sheet=MI250X_SHEET,
        ),
    ),
    "gfx950": (
        Target(name="gfx950", backend="hip", wave_size=64),
        _cdna(
            name="MI355X",
            compute_units=256,
            dies=8,
            local_bytes=160 * KIB,
            local_granule_bytes=1280,
            boost_mhz=2400,
            memory_gib=288,
            memory_tb_per_s=8.0,
            l2_bytes=32 * MIB,
            last_level_bytes=256 * MIB,
            matrix_flops=_tera(
                float64=78.6, float32=157.3, float16=2516.6, bfloat16=2516.6, float8=5033.2, int8=5033.2
            ),
            vector_flops=_tera(float64=78.6, float32=157.3),
            sheet=MI355X_SHEET,
        ),
    ),
    "sm_80": (
        Target(name="sm_80", backend="cuda", wave_size=32),
        _nvidia(
            name="A100 SXM 80 GB",
            multiprocessors=108,
            shared_kib=164,
            max_warps=64,
            max_blocks=32,
            boost_mhz=1410,
            memory_gb=80,
            memory_tb_per_s=2.039,
            l2_bytes=40 * MIB,
            matrix_flops=_tera(float64=19.5, tf32=156, float16=312, bfloat16=312, int8=624),
            vector_flops=_tera(float64=9.7, float32=19.5),
            sheet=A100_SHEET,
        ),
    ),
    "sm_89": (
        Target(name="sm_89", backend="cuda", wave_size=32),
        _nvidia(
            name="L40S",
            multiprocessors=142,
            shared_kib=100,
            max_warps=48,
            max_blocks=24,
            boost_mhz=2520,
            memory_gb=48,
            memory_tb_per_s=0.864,
            l2_bytes=96 * MIB,
            matrix_flops=_tera(tf32=183, float16=362.05, bfloat16=362.05, float8=733, int8=733),
            vector_flops=_tera(float32=91.6),
            sheet=L40S_SHEET,
        ),
    ),
    "sm_90": (
        Target(name="sm_90", backend="cuda", wave_size=32),
        _nvidia(
            name="H100 SXM5",
            multiprocessors=132,
            shared_kib=228,
            max_warps=64,
            max_blocks=32,
            boost_mhz=1980,
            memory_gb=80,
            memory_tb_per_s=3.35,
            l2_bytes=50 * MIB,
            matrix_flops=_tera(
                float64=66.9, tf32=494.7, float16=989.4, bfloat16=989.4, float8=1978.9, int8=1978.9
            ),
            vector_flops=_tera(float64=33.5, float32=66.9),
            sheet=H100_SHEET,
        ),
    ),
    "sm_100": (
        Target(name="sm_100", backend="cuda", wave_size=32),
        _nvidia(
            name="B200",
            multiprocessors=148,
            shared_kib=228,
            max_warps=64,
            max_blocks=32,
            boost_mhz=1965,
            memory_gb=180,
            memory_tb_per_s=8.0,
            l2_bytes=126 * MIB,
            matrix_flops=_tera(float64=37, tf32=1125, float16=2250, bfloat16=2250, float8=4500, int8=4500),
            vector_flops=_tera(float64=37, float32=75),
            sheet=B200_SHEET,
        ),
    ),
}

DEFAULT_TARGET = "gfx942"


def target(name: str) -> Target:
    """The target called `name`; `UnknownTarget` offers the nearest names."""
    row = _TABLE.get(name)
    if row is None:
        near = difflib.get_close_matches(name, _TABLE, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(_TABLE)}"
        raise UnknownTarget(f"unknown target {name!r}; {hint}")
    return row[0]


def targets() -> tuple[Target, ...]:
    """All targets that can be compiled for, AMD's first."""
    return tuple(known for known, _ in _TABLE.values())


def hardware(of: Target) -> Hardware:
    """Facts of the reference device that estimates and occupancy of this target are worked out with."""
    row = _TABLE.get(of.name)
    if row is None:
        raise UnknownTarget(f"no hardware facts for target {of.name!r}; known: {', '.join(_TABLE)}")
    return row[1]
