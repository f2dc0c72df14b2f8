"""Reads the tables of known products, `amd.toml` and `nvidia.toml`, into `Product`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .product import GIB, MIB, Product

_FROM_SHEET = (
    "compute_units", "dies", "boost_mhz", "memory_bytes", "memory_bytes_per_s", "l2_bytes", "last_level_bytes",
    "matrix_flops", "vector_flops", "power_w",
)  # fmt: skip
"""Fields that every sheet states; a row names the sources of its other fields."""
_TERA = 1e12
_UNITS: dict[str, tuple[str, float]] = {
    "memory_gib": ("memory_bytes", GIB),
    "memory_gb": ("memory_bytes", 10**9),
    "memory_tb_per_s": ("memory_bytes_per_s", _TERA),
    "l2_mib": ("l2_bytes", MIB),
    "last_level_mib": ("last_level_bytes", MIB),
    "last_level_tb_per_s": ("last_level_bytes_per_s", _TERA),
    "matrix_tflops": ("matrix_flops", _TERA),
    "vector_tflops": ("vector_flops", _TERA),
    "achievable_tflops": ("achievable_flops", _TERA),
    "achievable_tb_per_s": ("achievable_bytes_per_s", _TERA),
}
"""Keys of a table that have a unit: the field of `Product` and the factor."""


def read_products(file: Path) -> tuple[Product, ...]:
    """Return the products of one table, in its order; `msgspec.ValidationError` if the table has a wrong or unknown key."""
    table = msgspec.toml.decode(file.read_bytes())
    return tuple(_product(row, table["defaults"]) for row in table["product"])


def _product(row: dict[str, Any], defaults: dict[str, Any]) -> Product:
    """Return a row of a table as a product: units become bytes, Hz and FLOP/s, and sources are filled in from the defaults."""
    fields: dict[str, Any] = {"vendor_id": defaults["vendor_id"]}
    for key, value in row.items():
        if key not in _UNITS:
            fields[key] = value
            continue
        field, factor = _UNITS[key]
        is_by_dtype = isinstance(value, dict)
        fields[field] = (
            {dtype: peak * factor for dtype, peak in value.items()} if is_by_dtype else value * factor
        )
    sheet = dict.fromkeys(_FROM_SHEET, fields.pop("sheet"))
    fields["sources"] = sheet | defaults["sources"] | row.get("sources", {})
    return msgspec.convert(fields, Product)


PRODUCTS: tuple[Product, ...] = (
    *read_products(Path(__file__).parent / "amd.toml"),
    *read_products(Path(__file__).parent / "nvidia.toml"),
)
"""Whole devices, AMD's first; `partitions.scale_to_partition` scales one to a partition of it."""


def find_product(name: str) -> Product:
    """Return the whole product of this name; `KeyError` lists the known names."""
    products = {product.name: product for product in PRODUCTS}
    if name not in products:
        raise KeyError(f"no product {name!r}; known: {', '.join(products)}")
    return products[name]
