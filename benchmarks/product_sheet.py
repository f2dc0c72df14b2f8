"""The table of products as Markdown: `python -m benchmarks.product_sheet` prints `docs/hardware.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from harness.hardware.partitions import UnknownPartition, scale_to_partition
from harness.hardware.product import Product, numbers
from harness.hardware.product_tables import PRODUCTS

_DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8", "int8")
_INTRODUCTION = """\
# Products and their peaks

For people who read an efficiency (IO utilisation, MFU) or an estimate and ask which numbers it uses. `python -m
benchmarks.product_sheet` writes this page from the product tables of the judge; a test keeps both equal.

- Only these products have an efficiency. PCI id, name, units, memory and partition mode must all match; any other device is unknown.
- Peaks are the vendor's, dense, at boost clock. `(a)` is *achievable*: a figure that the vendor publishes as reached (NVIDIA: none).
- The numbers were written from the [sources](#sources), most of them from memory.
- Checked on a device: PCI id, name, units, L2, memory and highest clock of the H200. **No AMD GPU was ever used.**

A time is *suspect* in three cases:

1. Bytes that no cache can hold would need more than peak bandwidth.
2. Bytes beyond L2 would need more than the bandwidth of the last-level cache.
3. FLOPs would need more than the fastest units of their dtype at the highest clock.

If no speed of a cache is published, bytes that fit into it have no limit.
"""


def sheet() -> str:
    """The whole page."""
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
                    "L2, MiB",
                    "last level, MiB",
                    "W",
                ),
                (_device(one) for one in PRODUCTS),
            ),
            "\n## Peaks, TFLOP/s (TOP/s for int8)\n\nMatrix units; the last two columns are vector units.\n",
            *_table(("products", *_DTYPES, "vector float64", "vector float32"), _peak_rows()),
            "\n## Partitions\n\nOne device per mode, with the memory speed that it reaches while its neighbours are idle. A mode is left out, and has no\nefficiency, if its share of a shared memory is not published.\n",
            *_table(
                (
                    "device",
                    "units",
                    "dies",
                    "memory",
                    "TB/s",
                    "L2, MiB",
                    "last level, MiB",
                    "float16 TFLOP/s",
                ),
                (_partition(one) for one in _partitions()),
            ),
            "\n## Sources\n",
            "*The rest* means all numbers of these products that no other line names.\n",
            *_sources(),
            "",
        ]
    )


def _device(one: Product) -> tuple[str, ...]:
    ids = ", ".join(f"{one.vendor_id:04x}:{device:04x}" for device in one.device_ids)
    speed = f"{one.memory_bytes_per_s / 1e12:.4g}"
    if one.achievable_bytes_per_s is not None:
        speed += f" ({one.achievable_bytes_per_s / 1e12:.4g} a)"
    last = _mib(one.last_level_bytes) if one.last_level_bytes else "-"
    if one.last_level_bytes_per_s:
        last += f" at {one.last_level_bytes_per_s / 1e12:.4g} TB/s"
    return (
        one.name, one.target, ids, f"{one.compute_units}", _memory(one), speed, _mib(one.l2_bytes), last,
        f"{one.power_w}",
    )  # fmt: skip


def _peak_rows() -> Iterable[tuple[str, ...]]:
    """Products with the same peaks share a row."""
    names: dict[tuple[str, ...], list[str]] = {}
    for product in PRODUCTS:
        names.setdefault(_peaks(product), []).append(product.name)
    return ((", ".join(same), *peaks) for peaks, same in names.items())


def _peaks(one: Product) -> tuple[str, ...]:
    cells = []
    for dtype in _DTYPES:
        cell = f"{one.matrix_flops[dtype] / 1e12:g}" if dtype in one.matrix_flops else "-"
        if dtype in one.achievable_flops:
            cell += f" ({one.achievable_flops[dtype] / 1e12:g} a)"
        cells.append(cell)
    vector = (one.vector_flops.get(dtype) for dtype in ("float64", "float32"))
    return (*cells, *(f"{peak / 1e12:g}" if peak else "-" for peak in vector))


def _partitions() -> Iterable[Product]:
    for one in PRODUCTS:
        for mode in one.modes:
            for parts in mode.memory if mode.devices > 1 else ():
                try:
                    yield scale_to_partition(one, f"{mode.name}/NPS{parts}", None)
                except UnknownPartition:
                    continue  # the page says why such a mode is missing


def _partition(one: Product) -> tuple[str, ...]:
    return (
        one.name, f"{one.compute_units}", f"{one.dies}", _memory(one), f"{one.memory_bytes_per_s / 1e12:.4g}",
        _mib(one.l2_bytes), _mib(one.last_level_bytes), f"{one.matrix_flops['float16'] / 1e12:.4g}",
    )  # fmt: skip


def _sources() -> Iterable[str]:
    """Lines of products by source; the source of most of a product's fields has "the rest" of them."""
    products: dict[tuple[str, str], list[Product]] = {}
    for product in PRODUCTS:
        sources = [product.sources[field] for field in numbers() if field in product.sources]
        main = max(dict.fromkeys(sources), key=sources.count)
        for source in dict.fromkeys(sources):
            fields = [field for field in numbers() if product.sources.get(field) == source]
            words = "the rest" if source == main else ", ".join(fields)
            products.setdefault((source, words), []).append(product)
    for (source, words), named in products.items():
        yield f"- {source}: {words} of {_names(named)}"


def _names(products: Sequence[Product]) -> str:
    siblings = [product for product in PRODUCTS if product.vendor_id == products[0].vendor_id]
    if len(products) == len(siblings):
        return f"all {'AMD' if products[0].target.startswith('gfx') else 'NVIDIA'} products"
    return ", ".join(product.name for product in products)


def _memory(one: Product) -> str:
    """AMD's sheets count GiB, NVIDIA's GB."""
    if one.memory_bytes % (1 << 30) == 0:
        return f"{one.memory_bytes >> 30} GiB"
    return f"{one.memory_bytes / 1e9:.4g} GB"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(sheet())
