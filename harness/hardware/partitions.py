"""Scales a product to a part of it: compute and memory partitions of AMD packages, MIG slices of NVIDIA GPUs."""

from __future__ import annotations

import re

import msgspec

from .product import PartitionMode, Product

_AMD_MODE = re.compile(r"([A-Z]PX)/NPS(\d+)")
_MIG = re.compile(r"(?:MIG )?(\d+)g\.(\d+)gb(?:\+\S+)?", re.IGNORECASE)
_MIG_MEMORY_SLICES = 8
"""Slices of memory, bandwidth and L2 (source: NVIDIA MIG user guide); a profile's name contains its memory."""


class UnknownPartition(ValueError):
    """The numbers of this partition are unknown; the message says why."""


def scale_to_partition(product: Product, partition: str, compute_units: int | None) -> Product:
    """Return the product with the numbers of one partition; `UnknownPartition` if they are unknown.

    `partition` is `SPX/NPS1`, `CPX/NPS4`, ... (AMD), or a MIG profile such as `1g.18gb`. The memory peak holds while the other
    partitions are idle, as under a lease of the package. Achievable speeds are published for whole packages only and are dropped.
    """
    if amd := _AMD_MODE.fullmatch(partition.upper()):
        return _amd(product, amd[1], int(amd[2]))
    if mig := _MIG.fullmatch(partition):
        return _mig(product, partition.removeprefix("MIG "), int(mig[2]), compute_units)
    raise UnknownPartition(f"{product.name} in partition {partition!r}: this mode is unknown")


def _amd(product: Product, compute: str, memory: int) -> Product:
    """Return the product as a partition has it. Raises `UnknownPartition` for a mode that the product does not have."""
    if (compute, memory) == ("SPX", 1):
        return product
    mode = next((mode for mode in product.modes if mode.name == compute), None)
    if mode is None or memory not in mode.memory:
        known = ", ".join(f"{mode.name}/NPS{parts}" for mode in product.modes for parts in mode.memory)
        raise UnknownPartition(f"{product.name} has no mode {compute}/NPS{memory}; it has {known or 'none'}")
    return _share(product, mode, memory)


def _share(product: Product, mode: PartitionMode, memory: int) -> Product:
    """One of `mode.devices` equal devices: it has its own dies and L2, and shares its memory partition.

    Each die reaches the Infinity Cache, and memory behind it, over its own link. So the dies' share of that cache's bandwidth
    bounds both, if it is published.
    """
    if mode.devices > memory and product.last_level_bytes_per_s is None:
        raise UnknownPartition(
            f"{product.name} in {mode.name}/NPS{memory}: the memory bandwidth of one device is not published"
        )
    share = 1 / mode.devices
    links = product.last_level_bytes_per_s and product.last_level_bytes_per_s * share
    memory_side = product.memory_bytes_per_s / memory
    name = f"{mode.name}/NPS{memory}"
    return msgspec.structs.replace(
        product,
        name=f"{product.name} {name}",
        partition=name,
        compute_units=product.compute_units // mode.devices,
        dies=product.dies // mode.devices,
        memory_bytes=product.memory_bytes // mode.devices,
        memory_bytes_per_s=min(memory_side, links) if links else memory_side,
        l2_bytes=product.l2_bytes // mode.devices,
        last_level_bytes=product.last_level_bytes // memory,
        last_level_bytes_per_s=links,
        matrix_flops=_scaled(product.matrix_flops, share),
        vector_flops=_scaled(product.vector_flops, share),
        achievable_flops={},
        achievable_bytes_per_s=None,
    )


def _mig(product: Product, profile: str, gigabytes: int, compute_units: int | None) -> Product:
    """Return the product as a MIG slice has it: compute by its multiprocessors, memory by its eighths.

    Measured rates are left out, because they are those of the whole GPU. Raises `UnknownPartition` if `compute_units` is
    missing.
    """
    if not compute_units or compute_units > product.compute_units:
        raise UnknownPartition(f"MIG {profile} of {product.name}: its number of multiprocessors is unknown")
    slices = min(
        max(round(gigabytes * 1e9 / product.memory_bytes * _MIG_MEMORY_SLICES), 1), _MIG_MEMORY_SLICES
    )
    share, memory_share = compute_units / product.compute_units, slices / _MIG_MEMORY_SLICES
    return msgspec.structs.replace(
        product,
        name=f"{product.name} MIG {profile}",
        partition=f"MIG {profile}",
        compute_units=compute_units,
        memory_bytes=round(product.memory_bytes * memory_share),
        memory_bytes_per_s=product.memory_bytes_per_s * memory_share,
        l2_bytes=round(product.l2_bytes * memory_share),
        matrix_flops=_scaled(product.matrix_flops, share),
        vector_flops=_scaled(product.vector_flops, share),
        achievable_flops={},
        achievable_bytes_per_s=None,
    )


def _scaled(peaks: dict[str, float], share: float) -> dict[str, float]:
    return {dtype: peak * share for dtype, peak in peaks.items()}
