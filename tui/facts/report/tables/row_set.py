"""The rows of a report, their groups, and the figures that several tables have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sessions.metrics.accuracy import call_accuracy, correct_per_compile, execution_accuracy
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.intervals import wilson_interval
from sessions.metrics.selection import Selection, best_rows, comparable_rows, counted_rows, grouped
from sessions.metrics.speedup import SpeedupDefinition, speedup_geomean, speedup_mean, speedup_sign
from sessions.metrics.task_kinds import TaskKind
from sessions.state.figure_words import ratio_words
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.vocabulary import counted
from tui.facts.vocabulary import grouped as digits

if TYPE_CHECKING:
    from engine.predictions.original_verdicts import CandidateOf
Figure = TypeVar("Figure", int, float)


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
    """Category and difficulty by full task name."""
    originals: Mapping[CandidateOf, str] = field(default_factory=dict)
    """Verdicts by the benchmarks' own definitions of correct."""
    likenesses: tuple[Likeness, ...] = ()
    """Similarities of the winners; empty if no kernel was read."""
    unjudged: tuple[str, ...] = ()
    """Sessions of the report that have no judged attempt."""

    @cached_property
    def counted(self) -> tuple[AttemptRow, ...]:
        """The rows that say something about a method; the other rows are `left_out`."""
        return self._selection.rows

    @cached_property
    def _selection(self) -> Selection:
        return counted_rows(self.rows)

    @cached_property
    def bests(self) -> list[AttemptRow]:
        """The best counted row of each task of each session."""
        return best_rows(self.counted)

    @cached_property
    def by_method(self) -> list[RowGroup]:
        """The counted rows of each method with each model."""
        bests = grouped(self.bests, lambda row: row.session)
        groups: dict[tuple[str, ...], list[list[AttemptRow]]] = {}
        # All rows of a session have one method and one model.
        for session, own in grouped(self.counted, lambda row: row.session).items():
            together = groups.setdefault((method_of(own[0], self), own[0].model), [[], []])
            together[0] += own
            together[1] += bests.get(session, [])
        return [RowGroup(keys, own, best, self.timed(best)) for keys, (own, best) in sorted(groups.items())]

    @cached_property
    def comparable(self) -> Selection:
        """The counted rows without a speed, and the rows with speeds that may share a mean."""
        return comparable_rows(self.counted)

    @cached_property
    def comparable_by_method(self) -> list[RowGroup]:
        """The same of the `comparable` rows."""
        return groups_of(self, (METHOD, MODEL), self.comparable.rows) if self.apart else self.by_method

    @cached_property
    def provenance(self) -> tuple[str, ...] | None:
        """The hardware and software of most speeds: a table that is not about hardware has no others; `None` without speeds."""
        return next((row.provenance for row in self.comparable.rows if row.headline is not None), None)

    def timed(self, rows: Iterable[AttemptRow]) -> list[AttemptRow]:
        """Return the rows with a speed that may share a mean."""
        provenance = self.provenance
        return [row for row in rows if row.headline is not None and row.provenance == provenance]

    def left_out(self, *further: str) -> str:
        """Return what the tables leave out, by reason, as a sentence; `further` are reasons of one table."""
        reasons = [f"{digits(number)} {reason}" for reason, number in self._selection.left_out.items()]
        return f"Left out: {'; '.join(filter(None, (', '.join(reasons), *further))) or 'nothing'}."

    @cached_property
    def apart(self) -> str:
        """The number of speeds that means leave out because of their hardware or software; empty if none is."""
        number = sum(self.comparable.left_out.values())
        return f"from means, {counted(number, 'speedup')} of other hardware or software" if number else ""

    @cached_property
    def rejected(self) -> str:
        """The number of tasks without a best attempt, because a person rejected all; empty if there is none."""
        tasks = {(row.session, row.task) for row in self.counted}
        number = len(tasks) - len(self.bests)
        return f"{counted(number, 'task')} with only rejected attempts" if number else ""

    @cached_property
    def against(self) -> str:
        """A sentence that names the timing baselines; empty without speeds."""
        names = dict.fromkeys(row.against for row in self.counted if row.against)
        return f"Speedups are against {', '.join(names)}." if names else ""


class Key(NamedTuple):
    """A column by which rows are grouped."""

    title: str
    value: Callable[[AttemptRow, RowSet], str]
    """Empty: unknown."""
    right: bool = False


class RowGroup(NamedTuple):
    """Rows with the same values of the keys."""

    keys: tuple[str, ...]
    rows: Sequence[AttemptRow]
    bests: Sequence[AttemptRow]
    """The best row of each task of each session: the sample of the field's accuracies."""
    timed: Sequence[AttemptRow]
    """The best rows with a speed that may share a mean."""


def method_name(method: str, without: Sequence[str]) -> str:
    """Return a method with the modules that were off: `geak without one-shot`."""
    return f"{method} without {', '.join(without)}" if without else method


def method_of(row: AttemptRow, _: RowSet) -> str:
    """Return the method of a row, with the modules that were off."""
    return method_name(row.method, row.without)


METHOD = Key("method", method_of)
MODEL = Key("model", lambda row, _: row.model)


def groups_of(rows: RowSet, keys: Sequence[Key], among: Iterable[AttemptRow] | None = None) -> list[RowGroup]:
    """Return the counted rows, or those `among` them, by the values of the keys, sorted by these."""
    by_keys = grouped(
        rows.counted if among is None else among, lambda row: tuple(key.value(row, rows) for key in keys)
    )
    return [group_of(rows, values, own) for values, own in sorted(by_keys.items())]


def group_of(rows: RowSet, keys: tuple[str, ...], own: Sequence[AttemptRow]) -> RowGroup:
    """Return a group of these rows."""
    bests = best_rows(own)
    return RowGroup(keys, own, bests, rows.timed(bests))


def key_fields(keys: Sequence[Key]) -> tuple[Field[Any], ...]:
    """Return a column for each key, for items with values of these `keys`."""
    return tuple(
        Field(Column(key.title, keep=True, right=key.right), _key_value(place))
        for place, key in enumerate(keys)
    )


def _key_value(place: int) -> Callable[[Any], str]:
    return lambda item: str(item.keys[place])


def figure(value: Figure | None, words: Callable[[Figure], str]) -> Cell:
    """Return a number as a cell: its words for people, itself for programs."""
    return Cell("") if value is None else Cell(words(value), value=value)


def share_words(share: float) -> str:
    """Return a share of 0 to 1 as the field's papers print it: `54.89 %`."""
    return f"{share * 100:.2f} %"


def share(title: str, value: Callable[[RowGroup], float | None], *, drop: int = 0) -> Field[RowGroup]:
    """Return a column of shares."""
    return Field(Number(title, if_known=True, drop=drop), lambda group: figure(value(group), share_words))


def number(title: str, value: Callable[[RowGroup], int | None], *, drop: int = 0) -> Field[RowGroup]:
    """Return a column of counts."""
    return Field(Number(title, if_known=True, drop=drop), lambda group: figure(value(group), digits))


def mean_speed(
    title: str, mean: Callable[[Sequence[AttemptRow]], float | None], *, drop: int = 0
) -> Field[RowGroup]:
    """Return a column of mean speedups."""
    return Field(
        Number(title, if_known=True, drop=drop),
        lambda group: figure(mean(group.timed), lambda value: ratio_words(value, speedup_sign(group.timed))),
    )


def geak_mean(rows: Iterable[AttemptRow]) -> float | None:
    """Return the mean of GEAK's speedups."""
    return speedup_mean(rows, SpeedupDefinition.GEAK)


def interval_words(low: float, high: float) -> str:
    """Return an interval of shares: `[47.6, 62.0]`, in percent."""
    return f"[{low * 100:.1f}, {high * 100:.1f}]"


def _exec_interval(group: RowGroup) -> str:
    ends = wilson_interval(sum(row.correct for row in group.bests), len(group.bests))
    return "" if ends is None else interval_words(*ends)


N = number("n", lambda group: len(group.bests))
ACCURACY: tuple[Field[RowGroup], ...] = (
    N,
    share("call", lambda group: call_accuracy(group.bests)),
    share("exec", lambda group: execution_accuracy(group.bests)),
    Field(Number("exec 95 %", drop=4), _exec_interval, "dim"),
    share("correct/call", lambda group: correct_per_compile(group.bests), drop=5),
)
SPEED: tuple[Field[RowGroup], ...] = (
    mean_speed("speedup", speedup_geomean),
    mean_speed("GEAK mean", geak_mean, drop=2),
)
SAMPLE = (
    "n: tasks, once for each session; the best attempt of each counts. "
    "exec 95 %: Wilson's interval, as if tasks were independent."
)
MEANS = (
    "speedup: geometric mean of the timed winners. GEAK mean: arithmetic, over cases and then over winners."
)


def notes(rows: RowSet, *sentences: str) -> tuple[str, ...]:
    """Return what a reader of a table of accuracies and speeds must know."""
    means = (MEANS, rows.against) if rows.provenance is not None else ()
    return tuple(filter(None, (*sentences, *means, rows.left_out(rows.apart, rows.rejected))))
