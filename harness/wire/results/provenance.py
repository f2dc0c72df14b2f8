"""The hardware and software behind a figure: plain data that crosses processes and is kept on disk with each evaluation."""

from __future__ import annotations

import msgspec

RUNTIMES = (("rocm", "ROCm"), ("cu", "CUDA"))
"""Starts of torch's local version, and the runtime that they name."""


class Provenance(msgspec.Struct, frozen=True):
    """The hardware and software of an evaluation; empty or `None` for an unknown value. On `cpu` only the software."""

    product: str = ""
    """Name in the table of products, else the driver's name."""
    partition: str = ""
    """Compute and memory partition mode (`CPX/NPS4`), or `MIG`; empty if there is none, or if unknown."""
    address: str = ""
    """PCI address: which of several equal GPUs."""
    driver: str = ""
    firmware: str = ""
    """Version of the GPU's video BIOS, which on AMD names the whole firmware bundle."""
    runtime: str = ""
    """`ROCm 7.0`, `CUDA 12.8`: the runtime that torch was built for."""
    torch: str = ""
    triton: str = ""
    python: str = ""
    numpy: str = ""
    linux: str = ""
    max_clock_mhz: int | None = None
    """The highest clock that the driver allows. Clocks during a timing are in `Latency.window`."""
    power_cap_w: float | None = None


def compared_values(provenance: Provenance | None) -> tuple[str, ...]:
    """Return the values that must be equal before two figures are compared; unknown values are empty."""
    values = provenance or Provenance()
    return values.product, values.partition, values.driver, values.torch, values.triton


def same_provenance(first: Provenance | None, second: Provenance | None) -> bool:
    """Return whether one ratio, table row or prompt may have figures of both. Unknown (`None`) matches unknown."""
    return compared_values(first) == compared_values(second)


def same_hardware(first: Provenance | None, second: Provenance | None) -> bool:
    """Return whether two speedups, each against a baseline in its own run, may be compared after a change of software.

    Product and partition must be equal, and the product known. The times themselves are not compared.
    """
    return bool(compared_values(first)[0]) and compared_values(first)[:2] == compared_values(second)[:2]


def runtime_of(torch: str) -> str:
    """Return the GPU runtime in torch's version: `2.8.0+rocm7.0` gives `ROCm 7.0`, `2.8.0+cu128` gives `CUDA 12.8`."""
    local = torch.partition("+")[2]
    for start, name in RUNTIMES:
        number = local.removeprefix(start)
        if number != local and number[:1].isdigit():
            dotted = number if "." in number else f"{number[:-1]}.{number[-1]}"
            return f"{name} {dotted}"
    return ""
