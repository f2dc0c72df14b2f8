"""Protects the table of GPU products: sources of figures, consistent figures, and recognition of devices."""

from __future__ import annotations

import pytest

from harness.hardware.product import GIB, Product
from harness.hardware.product_tables import PRODUCTS, find_product
from harness.hardware.recognition import recognise
from harness.hardware.targets import Hardware, hardware, target, targets
from harness.wire.device import Identity

AMD, NVIDIA = 0x1002, 0x10DE


def identify(
    vendor: int | None, device: int | None, name: str, units: int | None, memory: int, partition: str = ""
) -> Product | None:
    return recognise(Identity(name, vendor, device, units, memory, partition)).product


@pytest.mark.parametrize("product", PRODUCTS, ids=lambda product: product.name)
def test_every_figure_has_a_source(product: Product) -> None:
    numbers = set(Product.__struct_fields__) - {"name", "target", "names", "partition", "sources"}
    defaults = (None, 0, 1.0, {}, ())
    filled = {field for field in numbers if getattr(product, field) not in defaults}
    assert filled <= {field for field, source in product.sources.items() if source}
    assert set(product.sources) <= numbers


def test_pci_identity_belongs_to_one_product() -> None:
    ids = [(product.vendor_id, device) for product in PRODUCTS for device in product.device_ids]
    assert len(set(ids)) == len(ids)


def test_reference_device_of_each_target_is_a_product() -> None:
    for known_target in targets():
        facts = hardware(known_target)
        product = find_product(facts.name)
        assert product.target == known_target.name
        assert facts.memory_bytes_per_s == product.memory_bytes_per_s
        assert facts.matrix_flops == product.matrix_flops
        assert set(facts.sources) == set(Hardware.__struct_fields__) - {"name", "sources"}
        assert all(facts.sources.values())
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
    ],
)
def test_device_is_recognised_by_ids_name_units_and_memory(
    vendor: int | None, device: int | None, name: str, units: int, memory: int, expected: str
) -> None:
    product = identify(vendor, device, name, units, memory)
    assert product.name == expected


@pytest.mark.parametrize(
    ("vendor", "device", "name", "units", "memory", "why"),
    [
        (NVIDIA, 0x2329, "NVIDIA H20", 132, 102_625_181_696, "H20 has 78 units, the device 132"),
        (NVIDIA, 0x2330, "GRID H100-40C", 132, 42 * GIB, "has 80 GB, the device 45 GB"),
        (None, None, "NVIDIA H100 80GB HBM3", 132, 150_109_880_320, "has 80 GB, the device 150 GB"),
        (NVIDIA, 0x233B, "NVIDIA H200 NVL", 132, 150_109_880_320, "PCI 10de:233b is not in the table"),
        (None, None, "NVIDIA GeForce RTX 4090", 128, 25_393_692_672, "is not in the table"),
        (AMD, 0x74A2, "AMD Instinct MI308X", 80, 192 * GIB, "is not in the table"),
        (None, None, "AMD Radeon Graphics", 304, 192 * GIB, "is not in the table"),
        (None, None, "AMD Instinct MI300X", None, 192 * GIB, "a name may be wrong"),
        (AMD, 0x74A1, "AMD Instinct MI300X", 38, 24 * GIB, "is partitioned, and its mode is unknown"),
    ],
)
def test_contradictory_device_is_no_product_with_a_reason(
    vendor: int | None, device: int | None, name: str, units: int | None, memory: int | None, why: str
) -> None:
    result = recognise(Identity(name, vendor, device, units, memory))
    assert result.product is None
    assert why in result.why


def test_unpartitioned_package_is_the_product() -> None:
    product = identify(AMD, 0x74A1, "AMD Instinct MI300X", 304, 192 * GIB, "SPX/NPS1")
    assert product == find_product("MI300X")


def test_partition_has_its_share_of_dies_and_memory() -> None:
    """CPX/NPS4 gives eight devices. Two devices share a quarter of the memory; under a lease one device has all of it."""
    product = identify(AMD, 0x74A1, "AMD Instinct MI300X", 38, 24 * GIB, "CPX/NPS4")
    assert (product.name, product.partition) == ("MI300X CPX/NPS4", "CPX/NPS4")
    assert (product.compute_units, product.dies) == (38, 1)
    assert product.memory_bytes == 24 * GIB
    assert product.memory_bytes_per_s == pytest.approx(5.3e12 / 4)
    assert (product.l2_bytes, product.last_level_bytes) == (4 << 20, 64 << 20)
    assert product.matrix_flops["float16"] == pytest.approx(1307.4e12 / 8)
    assert (product.achievable_flops, product.achievable_bytes_per_s) == ({}, None)


def test_mig_slice_has_its_share_of_units_and_memory() -> None:
    product = identify(NVIDIA, 0x2335, "NVIDIA H200 MIG 1g.18gb", 16, int(16.5 * GIB))
    assert product.name == "H200 SXM MIG 1g.18gb"
    assert product.memory_bytes_per_s == pytest.approx(4.8e12 / 8)
    assert product.matrix_flops["float16"] == pytest.approx(989.4e12 * 16 / 132)
    half = identify(NVIDIA, 0x20B0, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 42, int(19.5 * GIB))
    assert half.memory_bytes_per_s == pytest.approx(1.555e12 / 2)
