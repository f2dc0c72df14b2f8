"""The best configuration of each case as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.tuning.best_by_case import CaseBest
from harness import Latency
from tui.facts.evaluation.counted import case_sizes
from tui.facts.evaluation.times import case_speedup, side_us
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN

TITLE = "Best configuration of each case"
MEASURED = (
    "A case leaves the start of the sweep only for an attempt that is faster by its whole interval. "
    "The choice among several makes the best speedup look a little too high."
)
ESTIMATED = "No time was measured. The choice is by roofline estimates, which do not see every option: a guess, and not tuned."


def config_words(config: Mapping[str, object]) -> str:
    """Return `BLOCK=1024 num_warps=8`; a line if the text of the kernel sets nothing."""
    return " ".join(f"{name}={value}" for name, value in config.items()) or UNKNOWN


FIELDS: tuple[Field[CaseBest], ...] = (
    Field(Column("case", keep=True), lambda best: best.case),
    Field(Column("shape", if_known=True), lambda best: case_sizes(best.evaluation).get(best.case, "")),
    Field(Column("configuration", keep=True), lambda best: config_words(best.config)),
    Field(Column("attempt", keep=True), lambda best: best.attempt),
    Field(Number("baseline us", if_known=True), lambda best: _us(best.latency, baseline=True)),
    Field(Number("this us", if_known=True), lambda best: _us(best.latency)),
    Field(
        Number("speedup [95 %]", if_known=True),
        lambda best: "" if best.latency is None else case_speedup(best.latency) or best.latency.outcome.value,
    ),
    Field(
        Number("estimate us, not measured", if_known=True),
        lambda best: (
            "" if best.estimate is None else f"{best.estimate.low_us:.3g} to {best.estimate.high_us:.3g}"
        ),
    ),
)


def basis_words(bests: Sequence[CaseBest]) -> str:
    """Return whether times or estimates chose."""
    return MEASURED if any(best.latency is not None for best in bests) else ESTIMATED


def _us(latency: Latency | None, *, baseline: bool = False) -> str:
    return "" if latency is None else side_us(latency, baseline=baseline)
