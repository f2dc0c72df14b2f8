"""Tables of accuracies and speedups: overall, by difficulty, suite, category, module of the method, and shots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attribution import explained_deviance
from sessions.metrics.intervals import bootstrap_interval
from sessions.metrics.selection import grouped
from sessions.metrics.speedup import FAST_P, fast_p
from sessions.metrics.task_kinds import TaskKind
from sessions.settings import MODULES
from sessions.state.figure_words import interval_words
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Field, Number

from .row_set import (
    ACCURACY,
    METHOD,
    MODEL,
    SAMPLE,
    SPEED,
    Key,
    N,
    RowGroup,
    RowSet,
    groups_of,
    key_fields,
    notes,
    share,
    share_words,
)


class Split(NamedTuple):
    """A table of accuracies with a row for each group."""

    title: str
    keys: tuple[Key, ...]
    note: Callable[[RowSet], str] = lambda _: ""
    """A sentence of this table alone; may be empty."""


def _difficulty(row: AttemptRow, rows: RowSet) -> str:
    difficulty = rows.kinds.get(row.task, TaskKind()).difficulty
    return "" if difficulty is None else str(difficulty)


def _category(row: AttemptRow, rows: RowSet) -> str:
    return rows.kinds.get(row.task, TaskKind()).category


def _shots(row: AttemptRow, _: RowSet) -> str:
    return "0-shot" if "one-shot" in row.without else "1-shot"


def _explained(rows: RowSet) -> str:
    """Return how much category and method explain of whether a task is solved."""
    factors = {"category": lambda row: _category(row, rows), "method": lambda row: METHOD.value(row, rows)}
    explained = explained_deviance(rows.bests, factors)
    if explained is None:
        return ""
    alone = ", ".join(f"{name} {share_words(part)}" for name, part in explained.alone.items())
    return (
        f"Deviance of exec that a logistic model explains (KernelBench-X): {alone}, together "
        f"{share_words(explained.together)}."
    )


def _module(name: str) -> Key:
    return Key(name, lambda row, _: "off" if name in row.without else "on")


BASE_METHOD = Key("method", lambda row, _: row.method)
"""The method without its options, for tables that have these as columns."""
SPLITS: dict[str, Split] = {
    "difficulty": Split("By difficulty", (METHOD, MODEL, Key("difficulty", _difficulty, right=True))),
    "suites": Split("By suite", (METHOD, MODEL, Key("suite", lambda row, _: row.suite))),
    "categories": Split("By category and method", (Key("category", _category), METHOD, MODEL), _explained),
    "shots": Split("By model and shots", (BASE_METHOD, MODEL, Key("shots", _shots))),
    "modules": Split("By module", (BASE_METHOD, MODEL, *map(_module, MODULES))),
}


def split_section(name: str, rows: RowSet) -> Section:
    """Return one of the tables of `SPLITS`; empty if its groups do not differ, or if nothing is known about them."""
    split = SPLITS[name]
    groups = groups_of(rows, split.keys, rows.bests)
    varying = [place for place, key in enumerate(split.keys) if key not in (METHOD, MODEL, BASE_METHOD)]
    values = {tuple(group.keys[place] for place in varying) for group in groups}
    if len(values) < 2 or not any(any(value) for value in values):
        groups = []
    fields = (*key_fields(split.keys), *ACCURACY, *SPEED)
    section = section_of(split.title, fields, groups, lambda group: f"{name}:{'|'.join(group.keys)}")
    return section.named(name, notes(rows, SAMPLE, split.note(rows)))


def overall_section(rows: RowSet) -> Section:
    """Return accuracies and speedups of each method with each model."""
    bootstrap = "speedup 95 %: bootstrap over tasks." if rows.provenance is not None else ""
    fields = (
        *key_fields((METHOD, MODEL)),
        *ACCURACY,
        SPEED[0],
        Field(Number("speedup 95 %", if_known=True, drop=3), _speed_interval, "dim"),
        *SPEED[1:],
    )
    section = section_of("Overall", fields, rows.by_method, lambda group: "|".join(group.keys))
    return section.named("overall", notes(rows, SAMPLE, bootstrap))


def fast_section(rows: RowSet) -> Section:
    """Return for several p the share of the tasks with a winner more than p times as fast as the baseline."""
    groups = [group for group in rows.by_method if group.timed]
    fields = (*key_fields((METHOD, MODEL)), N, *(_fast(p) for p in FAST_P))
    section = section_of("fast_p", fields, groups, lambda group: "|".join(group.keys))
    meaning = (
        "Share of n that is correct and more than p times as fast as the baseline (KernelBench), by the speedup that ranks. "
        "Unknown if a winner was not timed, or with several kinds of hardware or software."
    )
    return section.named(
        "fast", (SAMPLE.partition(" exec")[0], meaning, rows.against, rows.left_out(rows.rejected))
    )


def _fast(p: float) -> Field[RowGroup]:
    return share(f"fast_{p:g}", lambda group: fast_p(group.bests, p))


def _speed_interval(group: RowGroup) -> str:
    """Return the bootstrap interval of the geometric mean over tasks; a task of several sessions is drawn as a whole."""
    logarithms = [
        [math.log(row.headline) for row in own if row.headline is not None]
        for own in grouped(group.timed, lambda row: row.task).values()
    ]
    # Sums by task: a draw then costs two additions a task.
    tasks = [(math.fsum(own), len(own)) for own in logarithms]

    def mean(drawn: Sequence[tuple[float, int]]) -> float | None:
        sums, counts = zip(*drawn, strict=True)
        return math.exp(sum(sums) / sum(counts))

    ends = bootstrap_interval(tasks, mean) if tasks else None
    return "" if ends is None else interval_words(*ends)
