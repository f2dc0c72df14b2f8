"""The best configuration of each case as a table."""

from __future__ import annotations

from collections.abc import Mapping

from engine.tuning.best_by_case import CaseBest
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN

TITLE = "Best configuration of each case"
MEASURED = (
    "A case leaves the start of the sweep only for an attempt that is faster by its whole interval. "
    "The choice among several makes the best speedup look a little too high."
)


def config_words(config: Mapping[str, object]) -> str:
    """Return `BLOCK=1024 num_warps=8`; a line if the text of the kernel sets nothing."""
    return " ".join(f"{name}={value}" for name, value in config.items()) or UNKNOWN


FIELDS: tuple[Field[CaseBest], ...] = (
    Field(Column("case", keep=True), lambda best: best.row.case),
    Field(Column("shape", if_known=True), lambda best: best.row.shape),
    Field(Column("configuration", keep=True), lambda best: config_words(best.config)),
    Field(Column("attempt", keep=True), lambda best: best.attempt),
    Field(Number("baseline us"), lambda best: str(best.row.baseline)),
    Field(Number("this us"), lambda best: str(best.row.candidate)),
    Field(Number("speedup [95 %]"), lambda best: best.row.words),
)
