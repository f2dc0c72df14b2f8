"""Recognises the product of a device by its PCI identity, name, units, memory and partition together, never by one alone."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from harness.wire.device import Device, Identity
from harness.wire.results.provenance import Provenance

from .partitions import UnknownPartition, scale_to_partition
from .product import Product
from .product_tables import PRODUCTS

MEMORY_WITHIN = (0.9, 1.1)
"""Bounds of the driver's memory over the sheet's: drivers reserve some, and NVIDIA's sheets use GB and GiB."""
_MIG_NAME = re.compile(r"(?P<model>.*\S)\s+(?P<partition>MIG \S+)", re.IGNORECASE)


class Recognised(NamedTuple):
    """The product of a device, or why it is unknown; then no efficiency is shown."""

    product: Product | None
    why: str = ""


def product_of(device: Device) -> Recognised:
    """Return the product of a discovered device; none for `cpu`."""
    if device.identity is None:
        return Recognised(
            None, "" if device.kind == "cpu" else "the driver reports nothing that identifies it"
        )
    return recognise(device.identity)


def describe_device(device: Device, software: Provenance, by_driver: Provenance | None) -> Provenance:
    """Return the provenance of figures on a device. `by_driver` is what its driver reports; `None` if it did not answer."""
    if device.kind == "cpu":
        return software
    driver, identity = by_driver or Provenance(), device.identity
    product = product_of(device).product
    name = product.name if product is not None else identity.model if identity is not None else ""
    return msgspec.structs.replace(
        software,
        product=name or driver.product or device.description,
        partition=(identity.partition if identity is not None else "") or driver.partition,
        address=device.address,
        driver=driver.driver,
        firmware=driver.firmware,
        max_clock_mhz=driver.max_clock_mhz,
        power_cap_w=driver.power_cap_w,
    )


def recognise(identity: Identity) -> Recognised:
    """
    Return the product, scaled to its partition, or why it is unknown.

    A PCI identity outweighs the name ("AMD Radeon Graphics", "MI300X VF"). Without one the name must be a product's and the
    units must be known. Units and memory must always fit: a virtual function with half the memory, or an H20 with the name of
    an H100, is no product of the table.
    """
    if mig := _MIG_NAME.fullmatch(identity.model.strip()):
        identity = msgspec.structs.replace(
            identity, model=mig["model"], partition=identity.partition or mig["partition"]
        )
    name, has_pci = identity.model, bool(identity.vendor_id and identity.device_id)
    candidates = [product for product in PRODUCTS if _matches(product, identity)]
    if not candidates:
        pci = f", PCI {identity.vendor_id:04x}:{identity.device_id:04x}" if has_pci else ""
        return Recognised(None, f"{name or 'the device'}{pci} is not in the table of products")
    if not has_pci and not identity.compute_units:
        return Recognised(
            None, f"{name}: its PCI identity and its units are unknown, and a name may be wrong"
        )
    reasons: list[str] = []
    for candidate in candidates:
        try:
            product = (
                scale_to_partition(candidate, identity.partition, identity.compute_units)
                if identity.partition
                else candidate
            )
        except UnknownPartition as error:
            reasons.append(str(error))
            continue
        contradiction = _contradiction(product, identity)
        if not contradiction:
            return Recognised(product)
        reasons.append(contradiction)
    return Recognised(None, "; ".join(reasons))


def _matches(product: Product, identity: Identity) -> bool:
    if identity.vendor_id and identity.device_id:
        return product.vendor_id == identity.vendor_id and identity.device_id in product.device_ids
    name = identity.model.strip()
    return any(re.fullmatch(pattern, name, re.IGNORECASE) for pattern in product.names)


def _contradiction(product: Product, identity: Identity) -> str:
    """Why units or memory do not fit; empty if they fit or are unknown."""
    units, memory = identity.compute_units, identity.memory_bytes
    if units and units != product.compute_units:
        is_part = any(units * mode.devices == product.compute_units for mode in product.modes)
        if is_part and not product.partition:
            return (
                f"{product.name} with {units} of {product.compute_units} units is partitioned, "
                "and its mode is unknown"
            )
        return f"{product.name} has {product.compute_units} units, the device {units}"
    low, high = MEMORY_WITHIN
    if memory and not low * product.memory_bytes <= memory <= high * product.memory_bytes:
        return f"{product.name} has {product.memory_bytes / 1e9:.0f} GB, the device {memory / 1e9:.0f} GB"
    return ""
