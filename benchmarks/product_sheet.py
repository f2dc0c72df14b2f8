"""Print the table of products as Markdown: `python -m benchmarks.product_sheet` writes `docs/hardware.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from harness.partitions import NoPart, part
from harness.product import Product, numbers
from harness.products import PRODUCTS

_DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8")
_INTRODUCTION = """\
# Products and their peaks

Written by `python -m benchmarks.product_sheet`; a test keeps it equal to `harness/products_amd.py` and `products_nvidia.py`.

Efficiency (IO utilisation, MFU) is shown for these products only. A device is recognised by PCI identity, name, units, memory
and partition mode together (`harness/products.py`); one that does not fit in every respect is unknown, and nothing is
said of its efficiency. Peaks are the vendors', dense, at boost clock. *Achievable* is what the vendor itself publishes as
reached; NVIDIA publishes none. Numbers were written down from the sources named below, most from memory of them.
Checked on a device: the PCI id, name, units, L2, memory and highest clock of the H200. No other product was at hand, **no AMD GPU among them**.

A time is *suspect* (`harness/efficiency.py`) when the bytes that no cache can have held would need more than peak bandwidth,
when bytes beyond L2 would need more than the last-level cache's, or when FLOPs pass the fastest units of their dtype at the
highest clock. What the caches can hold has no limit where no cache speed is published.
"""


def sheet() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _INTRODUCTION,
            "## Devices\n",
            *_table(
                (
                    "product",
                    "target",
                    "PCI ids",
                    "units",
                    "memory",
                    "TB/s",
                    "L2",
                    "last level",
                    "W",
                    "a package",
                ),
                (_device(product) for product in PRODUCTS),
            ),
            "\n## Peaks, TFLOP/s (TOP/s for int8)\n\nMatrix units; the last columns are vector units. `(a)` is what the vendor publishes as achievable.\n",
            *_table(
                ("product", *_DTYPES, "vector float64", "vector float32"),
                (_peaks(product) for product in PRODUCTS),
            ),
            "\n## Partitions\n\nOne device of each mode; memory speed is what it reaches while its neighbours rest. Modes whose\nshare of a memory that several devices use is not published are left out, and have no efficiency.\n",
            *_table(
                ("device", "units", "dies", "memory", "TB/s", "L2", "last level", "float16 TFLOP/s"),
                (_partition(product) for product in _partitions()),
            ),
            "\n## Sources\n",
            *(f"- **{product.name}**: {_sources(product)}" for product in PRODUCTS),
            "",
        ]
    )


def _device(product: Product) -> tuple[str, ...]:
    ids = ", ".join(f"{product.vendor_id:04x}:{device:04x}" for device in product.device_ids)
    speed = f"{product.memory_bytes_per_s / 1e12:.4g}"
    if product.achievable_bytes_per_s is not None:
        speed += f" ({product.achievable_bytes_per_s / 1e12:.4g} a)"
    last = _mib(product.last_level_bytes) if product.last_level_bytes else "-"
    if product.last_level_bytes_per_s:
        last += f", {product.last_level_bytes_per_s / 1e12:.4g} TB/s"
    return (
        product.name, product.target, ids, f"{product.compute_units}", _memory(product), speed, _mib(product.l2_bytes), last,
        f"{product.power_w}", f"{product.package_devices}",
    )  # fmt: skip


def _peaks(product: Product) -> tuple[str, ...]:
    cells = [product.name]
    for dtype in _DTYPES:
        cell = f"{product.matrix_flops[dtype] / 1e12:g}" if dtype in product.matrix_flops else "-"
        if dtype in product.achievable_flops:
            cell += f" ({product.achievable_flops[dtype] / 1e12:g} a)"
        cells.append(cell)
    vector = (product.vector_flops.get(dtype) for dtype in ("float64", "float32"))
    return (*cells, *(f"{peak / 1e12:g}" if peak else "-" for peak in vector))


def _partitions() -> Iterable[Product]:
    for product in PRODUCTS:
        for mode in product.modes:
            for parts in mode.memory if mode.devices > 1 else ():
                try:
                    yield part(product, f"{mode.name}/NPS{parts}", None)
                except NoPart:
                    continue  # the page explains why this mode is missing


def _partition(product: Product) -> tuple[str, ...]:
    return (
        product.name, f"{product.compute_units}", f"{product.dies}", _memory(product), f"{product.memory_bytes_per_s / 1e12:.4g}",
        _mib(product.l2_bytes), _mib(product.last_level_bytes), f"{product.matrix_flops['float16'] / 1e12:.4g}",
    )  # fmt: skip


def _sources(product: Product) -> str:
    fields: dict[str, list[str]] = {}
    for name in numbers():
        if name in product.sources:
            fields.setdefault(product.sources[name], []).append(name)
    return "; ".join(f"{source} ({', '.join(names)})" for source, names in fields.items())


def _memory(product: Product) -> str:
    # Data sheets of AMD use GiB, those of NVIDIA use GB.
    if product.memory_bytes % (1 << 30) == 0:
        return f"{product.memory_bytes >> 30} GiB"
    return f"{product.memory_bytes / 1e9:.4g} GB"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g} MiB"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(sheet())
