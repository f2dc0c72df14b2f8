"""The table of products: sources, figures that must bear on each other, and what is recognised as what."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.product_sheet import sheet
from harness.hardware.product import GIB, Product, numbers
from harness.hardware.product_tables import PRODUCTS, find_product
from harness.hardware.recognition import recognise
from harness.hardware.targets import hardware, target, targets
from harness.wire.device import Identity

AMD, NVIDIA = 0x1002, 0x10DE


def identify(
    vendor: int | None,
    device: int | None,
    name: str,
    units: int | None,
    memory: int | None,
    partition: str = "",
) -> Product | None:
    return recognise(Identity(name, vendor, device, units, memory, partition)).product


@pytest.mark.parametrize("one", PRODUCTS, ids=lambda one: one.name)
def test_every_number_has_a_source_and_no_source_is_idle(one: Product) -> None:
    unsaid = (None, 0, 1.0, {}, ())
    said = {field for field in numbers() if getattr(one, field) not in unsaid}
    assert said <= {field for field, source in one.sources.items() if source}
    assert set(one.sources) <= set(numbers())


def test_no_pci_identity_is_of_two_products() -> None:
    ids = [(one.vendor_id, device) for one in PRODUCTS for device in one.device_ids]
    assert len(set(ids)) == len(ids)


def test_the_reference_device_of_each_target_is_a_product() -> None:
    for each in targets():
        facts = hardware(each)
        same = find_product(facts.name)
        assert same.target == each.name
        assert facts.memory_bytes_per_s == same.memory_bytes_per_s
        assert facts.matrix_flops == same.matrix_flops
    assert hardware(target("gfx942")).name == "MI300X"


@pytest.mark.parametrize(
    ("vendor", "device", "name", "units", "memory", "expected"),
    [
        (AMD, 0x74A1, "AMD Instinct MI300X", 304, 206_141_652_992, "MI300X"),
        (AMD, 0x74A1, "AMD Radeon Graphics", 304, 191 * GIB, "MI300X"),
        (None, None, "AMD Instinct MI300X VF", 304, 191 * GIB, "MI300X"),
        (AMD, 0x74B9, "AMD Instinct Mi325X VF", 304, 255 * GIB, "MI325X"),
        (AMD, 0x74A0, "AMD Instinct MI300A", 228, 128 * GIB, "MI300A"),
        (AMD, 0x740C, "AMD Instinct MI250X / MI250", 110, 64 * GIB, "MI250X (one die)"),
        (AMD, 0x740F, "AMD Instinct MI210", 104, 64 * GIB, "MI210"),
        (AMD, 0x75A3, "AMD Radeon Graphics", 256, 288 * GIB, "MI355X"),
        (NVIDIA, 0x2335, "NVIDIA H200", 132, 150_109_880_320, "H200 SXM"),
        (NVIDIA, 0x2330, "NVIDIA H100 80GB HBM3", 132, 85_017_755_648, "H100 SXM5"),
        (None, None, "NVIDIA H100 80GB HBM3", 132, 85_017_755_648, "H100 SXM5"),
        (NVIDIA, 0x2329, "NVIDIA H20", 78, 102_625_181_696, "H20"),
        (None, None, "NVIDIA A100-SXM4-80GB", 108, 84_987_740_160, "A100 SXM 80 GB"),
        (NVIDIA, 0x26B9, "NVIDIA L40S", 142, 47_697_362_944, "L40S"),
        (None, None, "NVIDIA GeForce RTX 4090", 128, 25_393_692_672, "RTX 4090"),
    ],
)
def test_devices_are_recognised_by_all_that_is_told(
    vendor: int | None, device: int | None, name: str, units: int, memory: int, expected: str
) -> None:
    found = identify(vendor, device, name, units, memory)
    assert found is not None
    assert found.name == expected


@pytest.mark.parametrize(
    ("vendor", "device", "name", "units", "memory", "why"),
    [
        (NVIDIA, 0x2329, "NVIDIA H20", 132, 102_625_181_696, "H20 has 78 units, the device 132"),
        (NVIDIA, 0x2330, "GRID H100-40C", 132, 42 * GIB, "has 80 GB, the device 45 GB"),
        (None, None, "NVIDIA H100 80GB HBM3", 132, 150_109_880_320, "has 80 GB, the device 150 GB"),
        (NVIDIA, 0x233B, "NVIDIA H200 NVL", 132, 150_109_880_320, "PCI 10de:233b is not in the table"),
        (None, None, "NVIDIA GeForce RTX 4090 D", 114, 25_393_692_672, "is not in the table"),
        (AMD, 0x74A2, "AMD Instinct MI308X", 80, 192 * GIB, "is not in the table"),
        (None, None, "AMD Radeon Graphics", 304, 192 * GIB, "is not in the table"),
        (None, None, "AMD Instinct MI300X", None, 192 * GIB, "a name may be wrong"),
        (AMD, 0x74A1, "AMD Instinct MI300X", 38, 24 * GIB, "is partitioned, and its mode is unknown"),
    ],
)
def test_what_does_not_fit_is_no_product_and_says_why(
    vendor: int | None, device: int | None, name: str, units: int | None, memory: int | None, why: str
) -> None:
    found = recognise(Identity(name, vendor, device, units, memory))
    assert found.product is None
    assert why in found.why


def test_a_whole_package_in_its_default_mode_is_the_product_itself() -> None:
    found = identify(AMD, 0x74A1, "AMD Instinct MI300X", 304, 192 * GIB, "SPX/NPS1")
    assert found == find_product("MI300X")


def test_a_partition_has_its_dies_its_quarter_of_memory_and_its_links() -> None:
    """CPX/NPS4: eight devices; two of them share a quarter of the memory, which one reaches alone under a lease."""
    found = identify(AMD, 0x74A1, "AMD Instinct MI300X", 38, 24 * GIB, "CPX/NPS4")
    assert found is not None
    assert (found.name, found.partition) == ("MI300X CPX/NPS4", "CPX/NPS4")
    assert (found.compute_units, found.dies, found.package_devices) == (38, 1, 8)
    assert found.memory_bytes == 24 * GIB
    assert found.memory_bytes_per_s == pytest.approx(5.3e12 / 4)
    assert (found.l2_bytes, found.last_level_bytes) == (4 << 20, 64 << 20)
    assert found.matrix_flops["float16"] == pytest.approx(1307.4e12 / 8)
    assert (found.achievable_flops, found.achievable_bytes_per_s) == ({}, None)


def test_a_mig_slice_has_the_share_of_its_units_and_its_memory() -> None:
    found = identify(NVIDIA, 0x2335, "NVIDIA H200 MIG 1g.18gb", 16, int(16.5 * GIB))
    assert found is not None
    assert found.name == "H200 SXM MIG 1g.18gb"
    assert found.memory_bytes_per_s == pytest.approx(4.8e12 / 8)
    assert found.matrix_flops["float16"] == pytest.approx(989.4e12 * 16 / 132)
    half = identify(NVIDIA, 0x20B0, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 42, int(19.5 * GIB))
    assert half is not None
    assert half.memory_bytes_per_s == pytest.approx(1.555e12 / 2)


def test_the_page_of_the_documentation_is_the_table() -> None:
    page = Path(__file__).parents[2] / "docs" / "hardware.md"
    assert page.read_text(encoding="utf-8") == sheet(), (
        "write it anew: python -m benchmarks.product_sheet > docs/hardware.md"
    )
