"""Targets that can be compiled for, and the hardware facts behind estimates and occupancy, each with its source."""

from __future__ import annotations

import difflib

import msgspec

from harness.wire.device import Target
from harness.wire.errors import UnknownTarget

from .product import KIB, Product
from .product_tables import find_product

ROCM_SPECS = "ROCm documentation, AMD GPU specifications"
LLVM_AMDGPU = "LLVM AMDGPU back end (AMDGPUBaseInfo, AMDGPUUsage)"
CUDA_GUIDE = "CUDA C++ programming guide, technical specifications by compute capability"


class Hardware(msgspec.Struct, frozen=True):
    """
    The device that estimates and occupancy of a target are worked out with: its reference product, or the one at hand.

    Limits are the architecture's, the other numbers those of a product (`harness/hardware/recognition.py`). Peaks are the vendor's, dense (no structured sparsity), at boost clock: no kernel reaches them.
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
    l2_bytes: int
    """Second-level cache, all dies together."""
    last_level_bytes: int
    """Memory-side cache behind it; 0 where there is none."""
    matrix_flops: dict[str, float]
    """Peak of the matrix units by the dtype of the operands, FLOPs (or integer operations) a second."""
    vector_flops: dict[str, float]
    sources: dict[str, str]
    """Where the numbers come from, by field."""


def _cdna(product: str, *, local_kib: int, local_granule_bytes: int) -> Hardware:
    return _hardware(
        find_product(product),
        simds=4,
        local_bytes=local_kib * KIB,
        local_bytes_workgroup=local_kib * KIB,
        local_granule_bytes=local_granule_bytes,
        local_reserved_bytes=0,
        registers=512,
        register_granule=8,
        max_registers=512,
        max_waves=8,
        max_workgroups=16,
        source=LLVM_AMDGPU,
        local_source=ROCM_SPECS,
    )


def _cuda(product: str, *, shared_kib: int, max_warps: int, max_blocks: int) -> Hardware:
    return _hardware(
        find_product(product),
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
        source=CUDA_GUIDE,
        local_source=CUDA_GUIDE,
    )


def _hardware(product: Product, *, source: str, local_source: str, **limits: int) -> Hardware:
    """The architecture's limits, and the product's numbers under the same names."""
    sources = {name: product.sources[name] for name in _SHARED}
    sources |= dict.fromkeys(limits, source) | {"local_bytes": local_source}
    return msgspec.convert({**_numbers(product), **limits, "sources": sources}, Hardware)


_SHARED = tuple(
    name
    for name in Hardware.__struct_fields__
    if name in Product.__struct_fields__ and name not in ("name", "sources")
)


def _numbers(product: Product) -> dict[str, object]:
    return {name: getattr(product, name) for name in ("name", *_SHARED)}


_TABLE: dict[str, tuple[Target, Hardware]] = {
    "gfx942": (
        Target(name="gfx942", backend="hip", wave_size=64),
        _cdna("MI300X", local_kib=64, local_granule_bytes=512),
    ),
    "gfx90a": (
        Target(name="gfx90a", backend="hip", wave_size=64),
        _cdna("MI250X (one die)", local_kib=64, local_granule_bytes=512),
    ),
    "gfx950": (
        Target(name="gfx950", backend="hip", wave_size=64),
        _cdna("MI355X", local_kib=160, local_granule_bytes=1280),
    ),
    "sm_80": (
        Target(name="sm_80", backend="cuda", wave_size=32),
        _cuda("A100 SXM 80 GB", shared_kib=164, max_warps=64, max_blocks=32),
    ),
    "sm_89": (
        Target(name="sm_89", backend="cuda", wave_size=32),
        _cuda("L40S", shared_kib=100, max_warps=48, max_blocks=24),
    ),
    "sm_90": (
        Target(name="sm_90", backend="cuda", wave_size=32),
        _cuda("H100 SXM5", shared_kib=228, max_warps=64, max_blocks=32),
    ),
    "sm_100": (
        Target(name="sm_100", backend="cuda", wave_size=32),
        _cuda("B200", shared_kib=228, max_warps=64, max_blocks=32),
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


def hardware(of: Target, product: Product | None = None) -> Hardware:
    """Facts of the device that estimates and occupancy of this target are worked out with: where `product` is of this target its
    own, else the target's reference device.
    """
    row = _TABLE.get(of.name)
    if row is None:
        raise UnknownTarget(f"no hardware facts for target {of.name!r}; known: {', '.join(_TABLE)}")
    if product is None or product.target != of.name:
        return row[1]
    sources = row[1].sources | {name: product.sources[name] for name in _SHARED}
    return msgspec.structs.replace(row[1], **_numbers(product), sources=sources)
