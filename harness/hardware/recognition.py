"""Which product a device is: told by its PCI identity, name, units, memory and partition together, never by one alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from harness.wire.device import Device

from .partitions import NoPart, part
from .product import Product
from .product_tables import PRODUCTS

MEMORY_WITHIN = (0.9, 1.1)
"""Memory that a driver shows, over the sheet's: some is kept back, and NVIDIA's sheets count gigabytes of either kind."""
_MIG_NAME = re.compile(r"(?P<model>.*\S)\s+(?P<partition>MIG \S+)", re.IGNORECASE)


class Recognised(NamedTuple):
    """The product that a device is, or why it is none that is known: then no efficiency is shown."""

    product: Product | None
    why: str = ""


def identify(
    vendor_id: int | None,
    device_id: int | None,
    name: str,
    compute_units: int | None,
    memory_bytes: int | None,
    partition: str = "",
) -> Product | None:
    """The product, scaled to the partition at hand; `None` where it is not in the table or its facts contradict it."""
    return recognise(vendor_id, device_id, name, compute_units, memory_bytes, partition).product


def recognise(
    vendor_id: int | None,
    device_id: int | None,
    name: str,
    compute_units: int | None,
    memory_bytes: int | None,
    partition: str = "",
) -> Recognised:
    """
    As `identify`, with the reason where it is none.

    A PCI identity outweighs the name ("AMD Radeon Graphics", "MI300X VF"); without one the name must be a product's and
    the units must fit. What is not known is `None` or 0. Units and memory must fit in any case: a virtual function with
    half the memory, or an H20 that calls itself an H100, is no product of the table.
    """
    if mig := _MIG_NAME.fullmatch(name.strip()):
        name, partition = mig["model"], partition or mig["partition"]
    candidates = _by_identity(vendor_id, device_id, name)
    if not candidates:
        shown = f", PCI {vendor_id:04x}:{device_id:04x}" if vendor_id and device_id else ""
        return Recognised(None, f"{name or 'the device'}{shown} is not in the table of products")
    if not (vendor_id and device_id) and not compute_units:
        return Recognised(None, f"{name}: neither its PCI identity nor its units are known, and names lie")
    reasons: list[str] = []
    for candidate in candidates:
        try:
            found = part(candidate, partition, compute_units) if partition else candidate
        except NoPart as error:
            reasons.append(str(error))
            continue
        if why := _contradiction(found, compute_units, memory_bytes):
            reasons.append(why)
        else:
            return Recognised(found)
    return Recognised(None, "; ".join(reasons))


def product_of(device: Device) -> Recognised:
    """The product of a discovered device; none for `cpu`."""
    seen = device.identity
    if seen is None:
        return Recognised(None, "the driver told nothing that identifies it" if device.kind != "cpu" else "")
    return recognise(
        seen.vendor_id, seen.device_id, seen.model, seen.compute_units, seen.memory_bytes, seen.partition
    )


def _by_identity(vendor_id: int | None, device_id: int | None, name: str) -> list[Product]:
    if vendor_id and device_id:
        return [one for one in PRODUCTS if one.vendor_id == vendor_id and device_id in one.device_ids]
    return [
        one
        for one in PRODUCTS
        if any(re.fullmatch(pattern, name.strip(), re.IGNORECASE) for pattern in one.names)
    ]


def _contradiction(found: Product, compute_units: int | None, memory_bytes: int | None) -> str:
    """What does not fit; empty where all does."""
    if compute_units and compute_units != found.compute_units:
        if not found.partition and any(
            compute_units * mode.devices == found.compute_units for mode in found.modes
        ):
            return f"{found.name} with {compute_units} of {found.compute_units} units is partitioned, and its mode is not known"
        return f"{found.name} has {found.compute_units} units, the device {compute_units}"
    if memory_bytes:
        low, high = MEMORY_WITHIN
        memory = found.memory_bytes
        if not low * memory <= memory_bytes <= high * memory:
            return f"{found.name} has {memory / 1e9:.0f} GB, the device {memory_bytes / 1e9:.0f} GB"
    return ""
