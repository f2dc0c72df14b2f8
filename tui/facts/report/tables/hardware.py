"""Tables by hardware and software: the speeds on each, and the same tasks across them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from sessions.metrics.selection import best_rows, grouped
from sessions.metrics.speedup import share_slower, utilisation
from sessions.names import short_task
from sessions.state.figure_words import ratio_words
from sessions.state.speed import Speed
from tui.facts.report.section import Section, section_of
from tui.facts.report.winner_sections import speed_cell
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.vocabulary import grouped as digits

from .row_set import METHOD, MODEL, SPEED, Key, RowGroup, RowSet, figure, key_fields, number, share

Provenance = tuple[str, ...]


VALUES = ("hardware", "partition", "driver", "torch", "triton")
"""Titles of the values of a provenance, as in `compared_values`."""


def _value(place: int) -> Key:
    return Key(VALUES[place], lambda row, _: row.provenance[place] if row.provenance else "")


PROVENANCE = tuple(map(_value, range(len(VALUES))))


def device_section(rows: RowSet) -> Section:
    """Return the speedups on each hardware and software."""
    keys = (METHOD, MODEL, *PROVENANCE)
    timed = (row for row in rows.counted if row.headline is not None)
    groups = []
    for values, own in sorted(
        grouped(timed, lambda row: tuple(key.value(row, rows) for key in keys)).items()
    ):
        bests = best_rows(own)
        groups.append(RowGroup(values, own, bests, bests))
    fields = (
        *key_fields(keys),
        number("n", lambda group: len(group.timed)),
        *SPEED,
        share("slower than baseline", lambda group: share_slower(group.timed), drop=1),
        share("best share of peak", lambda group: _best_share(group), drop=3),
    )
    section = section_of("By hardware and software", fields, groups, lambda group: "|".join(group.keys))
    sample = (
        "n: timed winners. best share of peak: max(IOU, MFU) of any of them (TritonBench, KernelBench-X)."
    )
    return section.named("devices", (sample, rows.against, rows.left_out()))


def _best_share(group: RowGroup) -> float | None:
    shares = [share for row in group.timed if (share := utilisation(row)) is not None]
    return max(shares, default=None)


class Across(NamedTuple):
    """The best speedups of a task by hardware and software."""

    task: str
    speeds: dict[Provenance, Speed]

    @property
    def ratio(self) -> float:
        """The highest over the lowest."""
        values = [speed.value for speed in self.speeds.values()]
        return max(values) / min(values)


def across_section(rows: RowSet) -> Section:
    """Return the best speedup of each task on each hardware, for tasks that were timed on several."""
    timed = [row for row in rows.counted if row.headline is not None]
    names = _names(dict.fromkeys(row.provenance for row in timed))
    tasks = []
    for task, own in grouped(timed, lambda row: row.task).items():
        bests = best_rows(own, lambda row: row.provenance)
        speeds = {row.provenance: row.speed for row in bests if row.speed is not None}
        if len(speeds) > 1:
            tasks.append(Across(task, speeds))
    fields: tuple[Field[Across], ...] = (
        Field(Column("task", keep=True), lambda across: short_task(across.task)),
        *(
            Field(Number(name, if_known=True), partial(_speed_on, provenance))
            for provenance, name in names.items()
        ),
        Field(Number("highest/lowest"), lambda across: figure(across.ratio, ratio_words)),
    )
    section = section_of("Across hardware", fields, tasks, lambda across: f"task:{across.task}")
    alone = len({row.task for row in timed}) - len(tasks)
    sentence = f"n: {digits(len(tasks))} tasks with the best attempt on each. Each speedup is against the baseline there."
    apart = f"{digits(alone)} tasks that were timed on one hardware alone" if alone else ""
    return section.named("hardware", (sentence, rows.left_out(apart)))


def _speed_on(provenance: Provenance, across: Across) -> Cell:
    return speed_cell(across.speeds.get(provenance))


def _names(provenances: Iterable[Provenance]) -> dict[Provenance, str]:
    """Return a name for each: the product, and the other values where they differ."""
    padded = {provenance: provenance or ("",) * len(VALUES) for provenance in provenances}
    different = [
        place for place in range(1, len(VALUES)) if len({values[place] for values in padded.values()}) > 1
    ]
    return {
        provenance: " ".join(filter(None, (values[0] or "unknown", *(values[place] for place in different))))
        for provenance, values in padded.items()
    }
