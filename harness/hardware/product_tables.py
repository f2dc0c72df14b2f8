"""Reads the tables of known products, `amd.toml` and `nvidia.toml`, into `Product`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from .product import GIB, MIB, Mode, Product

_FROM_SHEET = (
    "compute_units", "dies", "boost_mhz", "memory_bytes", "memory_bytes_per_s", "l2_bytes", "last_level_bytes",
    "matrix_flops", "vector_flops", "power_w", "package_devices",
)  # fmt: skip
"""Fields that every sheet states; a row names the sources of its other fields."""
_GB = 10**9
_TERA = 1e12


class _Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One product as its table writes it, with the unit in each name."""

    name: str
    target: str
    device_ids: tuple[int, ...]
    names: tuple[str, ...]
    compute_units: int
    dies: int = 1
    boost_mhz: int
    matrix_mhz: int | None = None
    max_mhz: int | None = None
    memory_gib: int = 0
    memory_gb: int = 0
    memory_tb_per_s: float
    l2_mib: int
    last_level_mib: int = 0
    last_level_tb_per_s: float | None = None
    matrix_tflops: dict[str, float]
    vector_tflops: dict[str, float]
    achievable_tflops: dict[str, float] = {}
    achievable_tb_per_s: float | None = None
    half_accumulation: float = 1.0
    power_w: int
    package_devices: int = 1
    modes: tuple[Mode, ...] = ()
    sheet: str
    sources: dict[str, str] = {}


def read_products(file: Path) -> tuple[Product, ...]:
    """Return the products of one table, in its order; `msgspec.ValidationError` if the table has a wrong or unknown key."""
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    defaults = table["defaults"]
    return tuple(_product(msgspec.convert(row, _Row), defaults) for row in table["product"])


def _product(row: _Row, defaults: dict[str, Any]) -> Product:
    return Product(
        name=row.name,
        target=row.target,
        vendor_id=defaults["vendor_id"],
        device_ids=row.device_ids,
        names=row.names,
        compute_units=row.compute_units,
        dies=row.dies,
        boost_mhz=row.boost_mhz,
        matrix_mhz=row.matrix_mhz,
        max_mhz=row.max_mhz,
        memory_bytes=row.memory_gib * GIB + row.memory_gb * _GB,
        memory_bytes_per_s=row.memory_tb_per_s * _TERA,
        l2_bytes=row.l2_mib * MIB,
        last_level_bytes=row.last_level_mib * MIB,
        last_level_bytes_per_s=row.last_level_tb_per_s and row.last_level_tb_per_s * _TERA,
        matrix_flops=_flops(row.matrix_tflops),
        vector_flops=_flops(row.vector_tflops),
        half_accumulation=row.half_accumulation,
        achievable_flops=_flops(row.achievable_tflops),
        achievable_bytes_per_s=row.achievable_tb_per_s and row.achievable_tb_per_s * _TERA,
        power_w=row.power_w,
        package_devices=row.package_devices,
        modes=row.modes,
        sources=dict.fromkeys(_FROM_SHEET, row.sheet) | defaults["sources"] | row.sources,
    )


def _flops(tflops: dict[str, float]) -> dict[str, float]:
    return {dtype: peak * _TERA for dtype, peak in tflops.items()}


PRODUCTS: tuple[Product, ...] = (
    *read_products(Path(__file__).parent / "amd.toml"),
    *read_products(Path(__file__).parent / "nvidia.toml"),
)
"""Whole devices, AMD's first; `partitions.part` scales one to a partition of it."""


def find_product(name: str) -> Product:
    """Return the whole product of this name; `KeyError` lists the known names."""
    products = {product.name: product for product in PRODUCTS}
    if name not in products:
        raise KeyError(f"no product {name!r}; known: {', '.join(products)}")
    return products[name]
