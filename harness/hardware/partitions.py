"""What a part of a product can reach: compute and memory partitions of AMD's packages, MIG slices of NVIDIA's."""

from __future__ import annotations

import re

import msgspec

from .product import Mode, Product

_AMD_MODE = re.compile(r"([A-Z]PX)/NPS(\d+)")
_MIG = re.compile(r"(?:MIG )?(\d+)g\.(\d+)gb(?:\+\S+)?", re.IGNORECASE)
_MIG_INSTANCES = 7
"""The most that one GPU is cut into."""
_MIG_MEMORY_SLICES = 8
"""Of memory, its bandwidth and L2 (source: NVIDIA MIG user guide); a slice's name tells its memory."""


class NoPart(ValueError):
    """Nothing can be said of such a part of the product; the text says why."""


def part(product: Product, partition: str, compute_units: int | None) -> Product:
    """
    The product as one partition of it shows, its peaks scaled; `NoPart` where that cannot be told.

    `partition` is `SPX/NPS1`, `CPX/NPS4`, ... (AMD), or a MIG profile such as `1g.18gb`. A memory peak is what this part
    reaches while its neighbours rest, as they do under a lease of the package. What the vendor says of achievable speed
    is of whole packages and falls away.
    """
    if amd := _AMD_MODE.fullmatch(partition.upper()):
        return _amd(product, amd[1], int(amd[2]))
    if mig := _MIG.fullmatch(partition):
        return _mig(product, partition.removeprefix("MIG "), int(mig[2]), compute_units)
    raise NoPart(f"{product.name} in partition {partition!r}: no such mode is known")


def _amd(product: Product, compute: str, memory: int) -> Product:
    if (compute, memory) == ("SPX", 1):
        return product
    mode = next((one for one in product.modes if one.name == compute), None)
    if mode is None or memory not in mode.memory:
        known = ", ".join(f"{one.name}/NPS{parts}" for one in product.modes for parts in one.memory)
        raise NoPart(f"{product.name} has no mode {compute}/NPS{memory}; it has {known or 'none'}")
    return _share(product, mode, memory)


def _share(product: Product, mode: Mode, memory: int) -> Product:
    """One of equal devices: dies and their L2 are its own; the memory side is that of its memory partition.

    Dies reach the Infinity Cache, and memory through it, over links of their own: a share of that cache's bandwidth by
    dies bounds both, where it is published.
    """
    if mode.devices > memory and product.last_level_bytes_per_s is None:
        raise NoPart(
            f"{product.name} in {mode.name}/NPS{memory}: how much of its memory's speed one device reaches is not published"
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
        package_devices=mode.devices,
    )


def _mig(product: Product, profile: str, gigabytes: int, compute_units: int | None) -> Product:
    if not compute_units or compute_units > product.compute_units:
        raise NoPart(f"MIG {profile} of {product.name}: how many multiprocessors it has is not known")
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
        package_devices=min(max(product.compute_units // compute_units, 1), _MIG_INSTANCES),
    )


def _scaled(peaks: dict[str, float], share: float) -> dict[str, float]:
    return {dtype: peak * share for dtype, peak in peaks.items()}
