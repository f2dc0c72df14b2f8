"""The timing baseline as prompts show it: its source, its times by case, and the device's practical roofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness import Evaluation
from harness.hardware.product import Product
from harness.wire.results.provenance import Provenance, same_provenance
from sessions.state.cases import case_rows, measured_roofs
from sessions.state.figure_words import us_words

from .figures import roof_words
from .markdown import number

KERNEL_MARK = "@triton.jit"
"""Text without which a source has no Triton kernel. The judge can only time such a baseline beside a candidate."""


@dataclass(frozen=True, slots=True)
class BaselineFacts:
    """The timing baseline of a task."""

    name: str = ""
    """`triton`, `eager`, or the name of a file: as beside every speedup."""
    source: str = ""
    """Empty if prompts do not show it, or show it as the reference."""
    reference: str = ""
    """The code that says what a recorded task computes; empty if prompts do not show it."""
    times: Mapping[str, str] = field(default_factory=dict)
    """Time by case, with its share of the practical roof; empty if it was not timed."""
    roofs: str = ""
    """The device's practical roofs in one sentence; empty if unknown."""
    provenance: Provenance | None = None
    """Hardware and software of the times."""

    def beside(self, best: Evaluation | None, product: Product | None) -> BaselineFacts:
        """Returns these facts, without times that cannot be compared.

        Times are left out if `best` has another provenance, or if the bounds of the cases are for another product.
        """
        measured_on = self.provenance.product if self.provenance is not None else ""
        is_same_product = product is None or not measured_on or measured_on == product.name
        if is_same_product and (best is None or same_provenance(self.provenance, best.provenance)):
            return self
        return replace(self, times={}, roofs="")

    @property
    def timed(self) -> bool:
        """True if a time is known."""
        return bool(self.times)


def baseline_facts(
    name: str, source: str, evaluation: Evaluation | None, reference: str = ""
) -> BaselineFacts:
    """Returns the facts of a baseline that was judged like a candidate; without an evaluation only its source."""
    rows = [] if evaluation is None else case_rows(evaluation)
    return BaselineFacts(
        name=name,
        source=source,
        reference=reference,
        times={
            row.case: f"{number(row.candidate.ms * 1e3)}{f' ({roof})' if (roof := roof_words(row)) else ''}"
            for row in rows
            if row.candidate.ms is not None
        },
        roofs="" if evaluation is None else practical_roofs(evaluation),
        provenance=None if evaluation is None else evaluation.provenance,
    )


def practical_roofs(evaluation: Evaluation) -> str:
    """Returns the device's measured copy, matrix product and empty kernel in one sentence; empty without a roof."""
    roofs = measured_roofs(evaluation)
    parts = [
        f"a copy moves {roofs.bytes_per_s / 1e12:.2f} TB/s" if roofs.bytes_per_s is not None else "",
        f"a matrix product reaches {roofs.flops_per_s / 1e12:.0f} TFLOP/s" if roofs.flops_per_s else "",
    ]
    floors = [latency.floor_ms for latency in evaluation.latency if latency.floor_ms]
    known = [part for part in parts if part]
    if not known:
        return ""
    empty = f"; an empty kernel takes {us_words(min(floors))} us" if floors else ""
    return f"Measured on this device: {' and '.join(known)}{empty}."
