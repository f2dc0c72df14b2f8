"""The table of products as Markdown: `python -m benchmarks.product_sheet` prints `docs/hardware.md`."""

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
                    "L2",
                    "last level",
                    "W",
                    "a package",
                ),
                (_device(one) for one in PRODUCTS),
            ),
            "\n## Peaks, TFLOP/s (TOP/s for int8)\n\nMatrix units; the last columns are vector units. `(a)` is what the vendor publishes as achievable.\n",
            *_table(
                ("product", *_DTYPES, "vector float64", "vector float32"), (_peaks(one) for one in PRODUCTS)
            ),
            "\n## Partitions\n\nOne device of each mode; memory speed is what it reaches while its neighbours rest. Modes whose\nshare of a memory that several devices use is not published are left out, and have no efficiency.\n",
            *_table(
                ("device", "units", "dies", "memory", "TB/s", "L2", "last level", "float16 TFLOP/s"),
                (_partition(one) for one in _partitions()),
            ),
            "\n## Sources\n",
            *(f"- **{one.name}**: {_sources(one)}" for one in PRODUCTS),
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
        last += f", {one.last_level_bytes_per_s / 1e12:.4g} TB/s"
    return (
        one.name, one.target, ids, f"{one.compute_units}", _memory(one), speed, _mib(one.l2_bytes), last,
        f"{one.power_w}", f"{one.package_devices}",
    )  # fmt: skip


def _peaks(one: Product) -> tuple[str, ...]:
    cells = [one.name]
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
                    yield part(one, f"{mode.name}/NPS{parts}", None)
                except NoPart:
                    continue  # the page says why such a mode is missing


def _partition(one: Product) -> tuple[str, ...]:
    return (
        one.name, f"{one.compute_units}", f"{one.dies}", _memory(one), f"{one.memory_bytes_per_s / 1e12:.4g}",
        _mib(one.l2_bytes), _mib(one.last_level_bytes), f"{one.matrix_flops['float16'] / 1e12:.4g}",
    )  # fmt: skip


def _sources(one: Product) -> str:
    """Fields by source, in the order of the fields."""
    fields: dict[str, list[str]] = {}
    for name in numbers():
        if name in one.sources:
            fields.setdefault(one.sources[name], []).append(name)
    return "; ".join(f"{source} ({', '.join(names)})" for source, names in fields.items())


def _memory(one: Product) -> str:
    """AMD's sheets count GiB, NVIDIA's GB."""
    if one.memory_bytes % (1 << 30) == 0:
        return f"{one.memory_bytes >> 30} GiB"
    return f"{one.memory_bytes / 1e9:.4g} GB"


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g} MiB"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.stdout.write(sheet())
