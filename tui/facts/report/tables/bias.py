"""Tables of biases: winners that were chosen because they were fast, and kernels that were repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from sessions.metrics.bias import (
    RepairBias,
    Round,
    SelectionBias,
    SpeedGroup,
    repair_bias,
    rounds,
    selection_bias,
)
from sessions.state.figure_words import ratio_words
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Cell, Field, Number
from tui.facts.vocabulary import grouped as digits

from .row_set import METHOD, MODEL, RowSet, figure, key_fields, share_words

T = TypeVar("T")


class Bias(NamedTuple):
    """The biases of a method with a model."""

    keys: tuple[str, ...]
    selection: SelectionBias
    repair: RepairBias


def bias_section(rows: RowSet) -> Section:
    """Return found against confirmed speed, and the speed of rescued kernels against those that started correct."""
    biases = [
        Bias(group.keys, selection_bias(group.rows), repair_bias(group.rows))
        for group in rows.comparable_by_method
        if group.timed
    ]
    fields: tuple[Field[Bias], ...] = (
        *key_fields((METHOD, MODEL)),
        _count("timed again", lambda bias: bias.selection.timed_again),
        _speed("found", lambda bias: (bias.selection.found, bias.selection.sign)),
        _speed("confirmed", lambda bias: (bias.selection.confirmed, bias.selection.sign)),
        Field(Number("excess", if_known=True), lambda bias: figure(bias.selection.excess, share_words)),
        _count("failed exam", lambda bias: bias.selection.not_confirmed),
        _count("started correct", lambda bias: bias.repair.started_correct.kernels),
        _speed("their speedup", lambda bias: _geomean(bias.repair.started_correct)),
        _count("rescued", lambda bias: bias.repair.rescued.kernels),
        _speed("speedup of rescued", lambda bias: _geomean(bias.repair.rescued)),
    )
    section = section_of("Selection and repair", fields, biases, lambda bias: "|".join(bias.keys))
    meaning = (
        "found and confirmed: geometric means of the same winners, by the verdict's timing and by the exam's. excess: found over "
        "confirmed, minus 1. started correct, rescued: solved instances whose first attempt was correct, or failed."
    )
    return section.named("bias", (meaning, rows.left_out(rows.apart)))


class BiasStep(NamedTuple):
    """One iteration of a method with a model."""

    keys: tuple[str, ...]
    round: Round


def round_section(rows: RowSet) -> Section:
    """Return correctness and speed of the candidates of each iteration (KernelBench-X)."""
    steps = []
    for group in rows.comparable_by_method:
        of_group = rounds(group.rows)
        steps += [BiasStep(group.keys, of_one) for of_one in of_group] if len(of_group) > 1 else []
    fields: tuple[Field[BiasStep], ...] = (
        *key_fields((METHOD, MODEL)),
        Field(Number("iteration"), lambda step: figure(step.round.iteration, digits)),
        Field(Number("n"), lambda step: figure(step.round.attempts, digits)),
        _share("call", lambda step: step.round.called),
        _share("correct", lambda step: step.round.correct.kernels),
        _speed("speedup", lambda step: _geomean(step.round.correct)),
        _speed("GEAK mean", lambda step: (step.round.correct.mean, step.round.correct.sign)),
        _speed("after a correct one", lambda step: _geomean(step.round.persistent)),
        _speed("after a failed one", lambda step: _geomean(step.round.rescued)),
    )
    section = section_of("Candidates of each iteration", fields, steps, lambda step: "|".join(step.keys))
    sample = "n: judged attempts of this iteration alone, not the best so far."
    meaning = (
        "speedup: geometric mean of the correct ones; the last columns: those after a correct, or after a failed "
        "attempt of the same instance."
    )
    speeds = (meaning, rows.against) if rows.provenance is not None else ()
    return section.named("rounds", (sample, *speeds, rows.left_out(rows.apart)))


def _count(title: str, value: Callable[[Bias], int]) -> Field[Bias]:
    return Field(Number(title), lambda bias: figure(value(bias), digits))


def _geomean(group: SpeedGroup) -> tuple[float | None, str]:
    return group.geomean, group.sign


def _speed(title: str, value: Callable[[T], tuple[float | None, str]]) -> Field[T]:
    """Return a column of means with their signs."""

    def cell(item: T) -> Cell:
        mean, sign = value(item)
        return figure(mean, lambda speedup: ratio_words(speedup, sign))

    return Field(Number(title, if_known=True), cell)


def _share(title: str, value: Callable[[BiasStep], int]) -> Field[BiasStep]:
    return Field(Number(title), lambda step: figure(value(step) / step.round.attempts, share_words))
