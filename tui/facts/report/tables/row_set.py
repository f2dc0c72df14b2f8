"""The attempts of a report as one DataFrame, groups of them, and the sections that tables become."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attempts import attempts_frame
from sessions.metrics.formulas import geomean_speedup, mean_speedup
from sessions.metrics.selection import Selection, counted_rows
from sessions.metrics.task_kinds import TaskKind
from sessions.state.figure_words import ratio_words
from sessions.state.speed import joint_sign
from tui.facts.report.section import Bars, Plot, Section
from tui.facts.tables import Cell, Column, Number, Row
from tui.facts.vocabulary import UNKNOWN, counted, duration, money
from tui.facts.vocabulary import grouped as digits

if TYPE_CHECKING:
    from pandas import DataFrame

    from engine.predictions.original_verdicts import CandidateOf

KEYS = {"method": "variant", "model": "model_name"}
"""Titles and columns by which most tables group."""
SAMPLE = ["session", "task"]
"""A sample of the field's accuracies: the best attempt of each task of each session."""
INSTANCE = [*SAMPLE, "instance"]
SIGN = " sign"
"""End of the name of a column with the signs of another column."""


class Likeness(NamedTuple):
    """Similarities of a winner's kernels, 0 to 1; `None` if there is nothing to compare with."""

    method: str
    model: str
    golden: float | None
    """Similarity to the kernels of the task's own file, which is the golden kernel of a public benchmark."""
    example: float | None
    """Similarity to the examples that prompts of its instance showed until it was written."""


@dataclass(frozen=True)
class RowSet:
    """The judged attempts of all sessions of a report, and what is known about their tasks."""

    rows: tuple[AttemptRow, ...]
    kinds: Mapping[str, TaskKind] = field(default_factory=dict)
    """Category, difficulty and suite size of the tasks, by full task name."""
    originals: Mapping[CandidateOf, str] = field(default_factory=dict)
    """Verdicts by the benchmarks' own definitions of correct."""
    likenesses: tuple[Likeness, ...] = ()
    """Similarities of the winners; empty if no kernel was read."""
    unjudged: tuple[str, ...] = ()
    """Sessions of the report that have no judged attempt."""

    @cached_property
    def selection(self) -> Selection:
        """The rows that say something about a method, and the reasons of the others."""
        return counted_rows(self.rows)

    @cached_property
    def frame(self) -> DataFrame:
        """All attempts; the index is the place in `rows`. `comparable` marks the speeds that may share a mean."""
        frame = attempts_frame(self.rows, self.kinds)
        tokens = frame[["input_tokens", "output_tokens"]].sum(axis=1, min_count=1)
        comparable = [row.headline is not None and row.provenance == self.provenance for row in self.rows]
        device_s = frame.device_s.where(frame.device_s > 0)
        return frame.assign(tokens=tokens, device_s=device_s, comparable=comparable)

    @cached_property
    def counted(self) -> DataFrame:
        """The attempts that say something about a method."""
        return self.frame[self.frame.left_out == ""]

    @cached_property
    def bests(self) -> DataFrame:
        """The best counted attempt of each task of each session; its `call` is true if any attempt of the task ran."""
        return best_of(self.counted, SAMPLE)

    @cached_property
    def provenance(self) -> tuple[str, ...] | None:
        """Hardware and software of most speeds, which alone are in means; `None` without speeds. Of equals the first."""
        timed = Counter(row.provenance for row in self.selection.rows if row.headline is not None)
        return timed.most_common(1)[0][0] if timed else None

    def timed(self, attempts: DataFrame) -> DataFrame:
        """Return the attempts with a speed that may share a mean."""
        return attempts[attempts.comparable]

    def left_out(self, *further: str) -> str:
        """Return what a table leaves out, by reason, as a sentence; `further` are reasons of this table."""
        reasons = [f"{digits(number)} {reason}" for reason, number in self.selection.left_out.items()]
        return f"Left out: {'; '.join(filter(None, (', '.join(reasons), *further))) or 'nothing'}."

    @cached_property
    def apart(self) -> str:
        """The number of speeds that means leave out because of their hardware or software; empty if none is."""
        number = int((self.counted.speedup.notna() & ~self.counted.comparable).sum())
        return f"from means, {counted(number, 'speedup')} of other hardware or software" if number else ""

    @cached_property
    def rejected(self) -> str:
        """The number of tasks without a best attempt, because a person rejected all; empty if there is none."""
        number = len(self.counted.drop_duplicates(SAMPLE)) - len(self.bests)
        return f"{counted(number, 'task')} with only rejected attempts" if number else ""

    @property
    def against(self) -> str:
        """A sentence that names the timing baselines; empty without speeds."""
        names = dict.fromkeys(row.against for row in self.selection.rows if row.against)
        return f"Speedups are against {', '.join(names)}." if names else ""

    def coverage(self, attempts: DataFrame) -> str:
        """Return how many of the tasks of each suite these attempts have: `Tasks: 3 of 184 of tritonbench.`."""
        parts = []
        for suite, own in attempts.groupby("suite"):
            tasks = list(own.task.unique())
            size = max(self.kinds.get(task, TaskKind()).of_suite for task in tasks)
            parts.append(f"{digits(len(tasks))}{f' of {digits(size)}' if size else ''} of {suite}")
        return f"Tasks: {', '.join(parts)}." if parts else ""


def best_of(attempts: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the best attempt of each group that no person rejected; it has the `call` of any attempt of its group."""
    kept = attempts[~attempts.rejected]
    kept = kept.assign(call=kept.groupby(list(keys)).call.transform("any"))
    # A stable sort: of equal attempts the first stays the best.
    return kept.sort_values("rank", ascending=False, kind="stable").drop_duplicates(list(keys)).sort_index()


def frame_of(records: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Return records as a table."""
    import pandas

    return pandas.DataFrame.from_records(list(records))


def by(
    attempts: DataFrame, keys: Mapping[str, str], figures: Callable[[DataFrame], Mapping[str, Any]]
) -> DataFrame:
    """Return a row of figures for each group of attempts, sorted; `keys` are the columns by their titles in the table."""
    return frame_of(
        {**dict(zip(keys, values, strict=True)), **figures(own)}
        for values, own in attempts.groupby(list(keys.values()), dropna=False)
    )


def speed(title: str, timed: DataFrame) -> dict[str, Any]:
    """Return the geometric mean of the speedups with its sign, under a title."""
    return {title: geomean_speedup(timed.speedup), title + SIGN: joint_sign(timed.sign)}


def speeds(timed: DataFrame) -> dict[str, Any]:
    """Return the geometric mean of the speedups, and the arithmetic mean of GEAK's, with their signs."""
    geak = {"GEAK mean": mean_speedup(timed.geak), "GEAK mean" + SIGN: joint_sign(timed.sign)}
    return speed("speedup", timed) | geak


def share_words(share: float) -> str:
    """Return a share of 0 to 1 as the field's papers print it: `54.89 %`."""
    return f"{share * 100:.2f} %"


def shares_interval(low: float, high: float) -> str:
    """Return an interval of shares: `[47.6, 62.0]`, in percent."""
    return f"[{low * 100:.1f}, {high * 100:.1f}]"


SHARES = (
    "call", "exec", "ran", "correct", "correct/call", "exec sd", "call sd", "call@k", "pass@k", "excess", "of all",
    "slower than baseline", "best share of peak",
)  # fmt: skip
RATIOS = (
    "speedup", "speedup of a session", "speedup sd", "GEAK mean", "reached", "found", "confirmed", "their speedup", "speedup of rescued",
    "after a correct one", "after a failed one", "speedup@k", "highest/lowest",
)  # fmt: skip
WORDS: dict[str, Callable[[float], str]] = {
    **dict.fromkeys(SHARES, share_words),
    **dict.fromkeys(("copies of own kernel", "copies of example"), "{:.0f}".format),
    **dict.fromkeys(("cost", "cost a task", "cost a solved task"), money),
    **dict.fromkeys(
        ("device time", "wall time", "device time a task", "device time a solved task"), duration
    ),
}
"""The words of a number by the title of its column; ratios have signs, and others that no table words are counts."""
FIRST = 3
"""Columns of numbers that a narrow page keeps; of the others, the last goes first."""


def table_section(
    name: str,
    title: str,
    table: DataFrame,
    *sentences: str,
    words: Callable[[float], str] = lambda number: digits(round(number)),
    drop: Mapping[str, int] | None = None,
    plots: tuple[Plot | Bars, ...] = (),
) -> Section:
    """Return a table as a section; without rows it is empty. `words` writes the numbers of columns that `WORDS` lacks.

    `drop` is the order in which columns leave a page that is too narrow, the greatest first.
    """
    if table.empty:
        return Section(title, name=name)
    titles = [column for column in table.columns if not column.endswith(SIGN)]
    numeric = [column for column in titles if table[column].dtype.kind in "iuf"]
    drop = {column: place for place, column in enumerate(numeric) if place >= FIRST} if drop is None else drop
    columns = tuple(
        Number(column, if_known=True, drop=drop.get(column, 0))
        if column in numeric or "95 %" in column
        else Column(column, keep=True, if_known=column not in KEYS, drop=drop.get(column, 0))
        for column in titles
    )
    rows = [
        Row("", tuple(_cell(column, record, words) for column in titles))
        for record in table.to_dict("records")
    ]
    return Section(title, tuple(filter(None, sentences)), columns, tuple(rows), name=name, plots=plots)


def _cell(column: str, record: Mapping[str, Any], words: Callable[[float], str]) -> Cell:
    value = record[column]
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return Cell(UNKNOWN, "dim")
    if isinstance(value, str):
        return Cell(value)
    if column in RATIOS:
        return Cell(ratio_words(value, record.get(column + SIGN, "")), value=value)
    return Cell(digits(value) if isinstance(value, int) else WORDS.get(column, words)(value), value=value)
