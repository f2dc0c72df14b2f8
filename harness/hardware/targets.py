"""Targets to compile for, and the hardware facts behind needed bytes and occupancy, each with its source."""

from __future__ import annotations

import difflib

import msgspec

from harness.wire.device import Target
from harness.wire.errors import UnknownTarget

from .product import KIB, Product
from .product_tables import find_product

_ROCM_SPECS = "ROCm documentation, AMD GPU specifications"
_LLVM_AMDGPU = "LLVM AMDGPU back end (AMDGPUBaseInfo, AMDGPUUsage)"
_CUDA_GUIDE = "CUDA C++ programming guide, technical specifications by compute capability"


class Hardware(msgspec.Struct, frozen=True):
    """
    The device for which a target's needed bytes and occupancy are calculated: a product of this target, or its reference product.

    Limits come from the architecture, all other numbers from the product. Peaks are the vendor's, dense (no structured
    sparsity), at boost clock; no kernel reaches them.
    """

    name: str
    compute_units: int
    """Compute units (AMD) or streaming multiprocessors (NVIDIA)."""
    dies: int
    """Accelerator complex dies (XCDs), which get workgroups round-robin."""
    simds: int
    """SIMDs per compute unit, or warp schedulers per multiprocessor."""
    local_bytes: int
    """Local (shared) memory per compute unit."""
    local_bytes_workgroup: int
    """Upper limit for one workgroup."""
    local_granule_bytes: int
    """Local memory is allocated in multiples of this."""
    local_reserved_bytes: int
    """Local memory that the system takes from each workgroup."""
    registers: int
    """Vector registers per lane of one SIMD (AMD), or 32-bit registers per multiprocessor (NVIDIA)."""
    register_granule: int
    """Registers are allocated in multiples of this: per lane (AMD), per warp (NVIDIA)."""
    max_registers: int
    """Upper limit for one lane."""
    max_waves: int
    """Waves per SIMD (AMD) or warps per multiprocessor (NVIDIA)."""
    max_workgroups: int
    """Workgroups of more than one wave per compute unit, or blocks per multiprocessor."""
    boost_mhz: int
    memory_bytes: int
    memory_bytes_per_s: float
    l2_bytes: int
    """Second-level cache, all dies together."""
    last_level_bytes: int
    """Memory-side cache behind it; 0 if there is none."""
    matrix_flops: dict[str, float]
    """Peaks of the matrix units by operand dtype, in FLOPs (or integer operations) per second."""
    vector_flops: dict[str, float]
    sources: dict[str, str]
    """Source of each number, by field."""


_OF_PRODUCT = tuple(
    name for name in Hardware.__struct_fields__ if name in Product.__struct_fields__ and name != "sources"
)


def _cdna(*, local_kib: int, local_granule_bytes: int) -> dict[str, int]:
    """Return the limits that all CDNA compute units share, with local memory as given."""
    return {
        "simds": 4,
        "local_bytes": local_kib * KIB,
        "local_bytes_workgroup": local_kib * KIB,
        "local_granule_bytes": local_granule_bytes,
        "local_reserved_bytes": 0,
        "registers": 512,
        "register_granule": 8,
        "max_registers": 512,
        "max_waves": 8,
        "max_workgroups": 16,
    }


def _cuda(*, shared_kib: int, max_warps: int, max_blocks: int) -> dict[str, int]:
    """Return the limits that all CUDA multiprocessors share, with the rest as given.

    CUDA itself takes 1 KiB of shared memory a block.
    """
    return {
        "simds": 4,
        "local_bytes": shared_kib * KIB,
        "local_bytes_workgroup": (shared_kib - 1) * KIB,
        "local_granule_bytes": 128,
        "local_reserved_bytes": KIB,
        "registers": 65536,
        "register_granule": 256,
        "max_registers": 255,
        "max_waves": max_warps,
        "max_workgroups": max_blocks,
    }


_TABLE: dict[str, tuple[str, dict[str, int]]] = {
    "gfx942": ("MI300X", _cdna(local_kib=64, local_granule_bytes=512)),
    "gfx90a": ("MI250X (one die)", _cdna(local_kib=64, local_granule_bytes=512)),
    "gfx950": ("MI355X", _cdna(local_kib=160, local_granule_bytes=1280)),
    "sm_80": ("A100 SXM 80 GB", _cuda(shared_kib=164, max_warps=64, max_blocks=32)),
    "sm_89": ("L40S", _cuda(shared_kib=100, max_warps=48, max_blocks=24)),
    "sm_90": ("H100 SXM5", _cuda(shared_kib=228, max_warps=64, max_blocks=32)),
    "sm_100": ("B200", _cuda(shared_kib=228, max_warps=64, max_blocks=32)),
}
"""The reference product of each target, and the limits of its architecture."""

DEFAULT_TARGET = "gfx942"


def target(name: str) -> Target:
    """Return the target of this name; `UnknownTarget` offers the nearest names."""
    if name not in _TABLE:
        near = difflib.get_close_matches(name, _TABLE, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(_TABLE)}"
        raise UnknownTarget(f"unknown target {name!r}; {hint}")
    is_amd = name.startswith("gfx")
    return Target(name=name, backend="hip" if is_amd else "cuda", wave_size=64 if is_amd else 32)


def targets() -> tuple[Target, ...]:
    """Return all targets, AMD's first."""
    return tuple(map(target, _TABLE))


def hardware(of: Target, product: Product | None = None) -> Hardware:
    """Return the facts of `product` if it has this target, else of the target's reference product."""
    if of.name not in _TABLE:
        raise UnknownTarget(f"no hardware facts for target {of.name!r}; known: {', '.join(_TABLE)}")
    reference, limits = _TABLE[of.name]
    if product is None or product.target != of.name:
        product = find_product(reference)
    limit_source, local_source = (
        (_LLVM_AMDGPU, _ROCM_SPECS) if of.backend == "hip" else (_CUDA_GUIDE, _CUDA_GUIDE)
    )
    numbers = {name: getattr(product, name) for name in _OF_PRODUCT}
    sources = {name: product.sources[name] for name in _OF_PRODUCT if name != "name"}
    sources |= dict.fromkeys(limits, limit_source) | {"local_bytes": local_source}
    return msgspec.convert({**numbers, **limits, "sources": sources}, Hardware)
