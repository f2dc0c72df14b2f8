"""The hardware and software behind figures, and whether its GPUs were verified, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness import Evaluation
from harness.wire.results.provenance import Provenance, same_provenance

APART = "not compared with {name}: other hardware or software timed it"


def provenance_words(provenance: Provenance | None, *, brief: bool = False) -> str:
    """Return the known values on one line; `brief`: only those that decide whether figures are compared."""
    if provenance is None:
        return ""
    firmware = provenance.firmware and f"firmware {provenance.firmware}"
    clock, cap = provenance.max_clock_mhz, provenance.power_cap_w
    parts = (
        (provenance.product, False),
        (provenance.partition, False),
        (provenance.driver and f"driver {provenance.driver}", False),
        (firmware, True),
        (provenance.runtime, True),
        (provenance.torch and f"torch {provenance.torch}", False),
        (provenance.triton and f"triton {provenance.triton}", False),
        (provenance.python and f"python {provenance.python}", True),
        (provenance.numpy and f"numpy {provenance.numpy}", True),
        (provenance.linux and f"linux {provenance.linux}", True),
        ("" if clock is None else f"clock up to {clock} MHz", True),
        ("" if cap is None else f"power cap {cap:.0f} W", True),
        (provenance.address and f"PCI {provenance.address}", True),
    )
    return ", ".join(words for words, is_detail in parts if words and not (brief and is_detail))


def distinct_provenances(evaluations: Iterable[Evaluation]) -> list[Provenance]:
    """Return the provenances that are not compared with each other, in order of appearance; without unknown ones."""
    distinct: list[Provenance] = []
    for evaluation in evaluations:
        provenance = evaluation.provenance
        if provenance is not None and not any(same_provenance(provenance, before) for before in distinct):
            distinct.append(provenance)
    return distinct


def verification_words(standings: Mapping[str, str]) -> str:
    """Return `MI300X: unverified on AMD`; empty without a GPU."""
    return "; ".join(f"{product}: {standing}" for product, standing in standings.items())
