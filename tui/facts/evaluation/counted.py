"""Tables of kernels that no GPU timed: what changed from attempt to attempt, and the bytes that the interpreter counted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from harness import Evaluation, Traffic
from harness.wire.limits import memory_words
from sessions.state.figure_words import ratio_words
from sessions.state.ranking import own_kernels, traffic_excess
from sessions.state.state import AttemptState, InstanceState
from tui.facts.attempt import origin_words, strategy_words
from tui.facts.evaluation.resources import usage_of
from tui.facts.evaluation.task_cases import sizes_words
from tui.facts.tables import Cell, Column, Field, Number, Table, columns_of, rows_of, table_of
from tui.facts.vocabulary import count, decision_mark, grouped, letter, speed_style, verdict_style

MORE, LESS = "▴", "▾"

TRAFFIC: tuple[Field[Traffic], ...] = (
    Field(Column("case", keep=True), lambda traffic: traffic.case),
    Field(Column("sizes", drop=7), lambda traffic: sizes_words(traffic.sizes), "dim"),
    Field(Number("moved"), lambda traffic: memory_words(traffic.requested_bytes)),
    Field(
        Number("unique", drop=2),
        lambda traffic: memory_words(traffic.unique_read_bytes + traffic.unique_write_bytes),
    ),
    Field(
        Number("needed", drop=1), lambda traffic: memory_words(traffic.needed_bytes or traffic.minimal_bytes)
    ),
    Field(
        Number("moved/needed"),
        lambda traffic: "" if traffic.excess is None else f"{traffic.excess:.2f}",
    ),
    Field(
        Number("dot FLOPs", if_known=True, drop=3),
        lambda traffic: count(traffic.dot_flops) if traffic.dot_flops else "",
    ),
    Field(Number("launches", drop=5), lambda traffic: grouped(traffic.launches)),
    Field(Number("programs", drop=6), lambda traffic: grouped(traffic.programs)),
)


def traffic_words(evaluation: Evaluation) -> str:
    """Return requested over needed bytes of all cases as `traffic 1.34x`; empty if unknown."""
    excess = traffic_excess(evaluation)
    return "" if excess is None else f"traffic {ratio_words(excess)}"


def traffic_change(first: Evaluation | None, best: Evaluation) -> str:
    """Return `traffic 2.00x -> 1.00x`, from the first correct attempt to the best, or one figure if that is all."""
    before, after = traffic_words(first) if first is not None else "", traffic_words(best)
    return f"{before} -> {after.removeprefix('traffic ')}" if before and after and before != after else after


def traffic_table(evaluation: Evaluation) -> Table:
    """Return the bytes of each case at `cpu` sizes, and why a case was not run at its `gpu` sizes; empty without both."""
    title = "bytes moved, counted by the interpreter at CPU sizes"
    silent = (f"{case} not run at GPU sizes: {why}" for case, why in evaluation.not_sampled.items())
    return table_of(title, TRAFFIC, evaluation.traffic).with_sentences(*silent, style="dim")


class Figures(NamedTuple):
    """Figures by which attempts differ without a time; `None` for a figure that is unknown."""

    excess: float | None
    """Bytes that loads and stores move, over the bytes that are needed."""
    launches: int | None
    registers: int | None
    spills: int | None
    local_bytes: int | None
    waves: float | None
    waits: int | None
    """The most waits in the code of a kernel."""


UNKNOWN_FIGURES = Figures(*[None] * len(Figures._fields))


def figures_of(attempt: AttemptState | None) -> Figures:
    """Return the figures of an attempt: registers and local bytes are the most of its kernels for the first target."""
    if attempt is None or attempt.evaluation is None:
        return UNKNOWN_FIGURES
    evaluation = attempt.evaluation
    return Figures(
        traffic_excess(evaluation),
        max((traffic.launches for traffic in evaluation.traffic), default=None),
        *usage_of(evaluation),
        max((kernel.code.waits for kernel in own_kernels(evaluation) if kernel.code), default=None),
    )


class Step(NamedTuple):
    """An attempt of an instance with its figures, beside those of the attempt from which it was made."""

    attempt: AttemptState
    figures: Figures
    before: Figures
    is_best: bool
    """True if it is the best of its instance."""


def _figure(place: int, words: Callable[[float], str], step: Step) -> Cell:
    """Return a figure with a mark if it differs from the base's; empty if it is unknown."""
    value, before = step.figures[place], step.before[place]
    if value is None:
        return Cell("")
    if before is None or words(value) == words(before):
        return Cell(f"{words(value)} ")
    return Cell(words(value) + (MORE if value > before else LESS), "bold")


def _change(step: Step) -> Cell:
    """Return the error, else the strategy in the model's words."""
    judged = step.attempt.judged
    if judged is not None and judged.error is not None:
        return Cell(judged.error)
    return Cell(strategy_words(step.attempt), "dim")


FIGURES: tuple[tuple[Column, Callable[[float], str]], ...] = (
    (Number("moved/needed"), ratio_words),
    (Number("launches", drop=1), "{:g}".format),
    (Number("registers"), "{:g}".format),
    (Number("spills"), "{:g}".format),
    (Number("LDS"), memory_words),
    (Number("occupancy"), "{:g}".format),
    (Number("waits"), "{:g}".format),
)
"""Column and words of each of the `Figures`."""
STEPS: tuple[Field[Step], ...] = (
    Field(
        Column("attempt", keep=True),
        lambda step: Cell(
            f"{step.attempt.number:>2} {letter(step.attempt.verdict)}{decision_mark(step.attempt)}"
            f"{'*' if step.is_best else ''}",
            verdict_style(step.attempt.verdict),
        ),
    ),
    Field(
        Column("origin", 10, drop=3),
        lambda step: origin_words(step.attempt, (step.attempt.base or "").rpartition("/")[2]),
        "dim",
    ),
    Field(
        Number("speedup", if_known=True),
        lambda step: Cell("" if (speed := step.attempt.speed) is None else speed.figure, speed_style(speed)),
    ),
    *(Field(column, partial(_figure, place, words)) for place, (column, words) in enumerate(FIGURES)),
    Field(Column("strategy, or error", 24, drop=2), _change),
)


def steps_table(instance: InstanceState) -> Table:
    """Return a row for each attempt of an instance: without a GPU it shows what changed from attempt to attempt."""
    figures = {attempt.attempt: figures_of(attempt) for attempt in instance.attempts}
    steps = [
        Step(
            attempt,
            figures[attempt.attempt],
            figures.get(attempt.base or "", UNKNOWN_FIGURES),
            attempt is instance.best_correct,
        )
        for attempt in instance.attempts
    ]
    return Table("", columns_of(STEPS), rows_of(STEPS, steps, lambda step: step.attempt.attempt))


def steps_words(attempt: AttemptState) -> str:
    """Return what the marks and figures of `steps_table` mean; the target is the attempt's."""
    target = next(iter(attempt.evaluation.resources), "") if attempt.evaluation is not None else ""
    compiled = f" Registers, LDS, waits: the most of its kernels for {target}." if target else ""
    return f"* the best. {MORE} {LESS} more or less than in its base. moved/needed: in bytes.{compiled}"
