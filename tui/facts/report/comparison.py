"""The comparison of two sides in words, as sections of a page: first whether the difference is proven."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attempts import model_name, variant_of
from sessions.metrics.comparison import LEAST_TASKS, LEVEL, Comparison, Difference, compare_all
from sessions.metrics.equal_budget import EqualCost, TaskPair
from sessions.names import short_task, split_series
from sessions.state.figure_words import ratio_words
from tui.diagnostics import Complaint
from tui.facts.report.section import Section, section_of
from tui.facts.settings_words import task_words
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import counted, grouped

SIDES = ("A", "B")


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Two sides at equal budget."""

    sides: dict[str, str]
    """Each side in words, by its letter."""
    comparison: Comparison


def compare_sides(
    first: Sequence[AttemptRow], second: Sequence[AttemptRow], budget: EqualCost
) -> ComparedSides:
    """Return the comparison of two sides, each the rows of a session or of several.

    Raises `Complaint` with the next step if no task can be compared, and `ExtraMissing`.
    """
    (comparison,) = compare_all((first, second), budget)
    if not comparison.pairs:
        raise Complaint(_why_not(comparison, first, second))
    sides = {letter: _side_words(rows) for letter, rows in zip(SIDES, (first, second), strict=True)}
    return ComparedSides(sides, comparison)


def _side_words(rows: Sequence[AttemptRow]) -> str:
    sessions = dict.fromkeys(row.session for row in rows)
    methods = dict.fromkeys(map(variant_of, rows))
    models = dict.fromkeys(map(model_name, rows))
    seeds = dict.fromkeys(str(row.seed) for row in rows)
    name = (
        next(iter(sessions))
        if len(sessions) == 1
        else f"{len(sessions)} sessions of {split_series(rows[0].series).study}"
    )
    return f"{name}, {', '.join(methods)}, {', '.join(models)}, seed {', '.join(seeds)}"


def _why_not(comparison: Comparison, first: Sequence[AttemptRow], second: Sequence[AttemptRow]) -> str:
    tasks = [{row.task for row in rows} for rows in (first, second)]
    if all(tasks) and tasks[0].isdisjoint(tasks[1]):
        words = [task_words(sorted(own), 2) for own in tasks]
        return f"A and B have no common task: A has {words[0]}, B has {words[1]}"
    reasons = "; ".join(_left_out(comparison)) or "nothing was judged"
    at = comparison.budget
    return f"no task of A and B can be compared: {reasons}" + (
        "" if at is EqualCost.ATTEMPTS else f"; compare at equal {EqualCost.ATTEMPTS.unit}"
    )


def comparison_facts(compared: ComparedSides) -> dict[str, str]:
    """Return the head of a page: the sides and their budget."""
    pairs = compared.comparison.pairs
    low, high = min(pair.budget[0] for pair in pairs), max(pair.budget[1] for pair in pairs)
    span = grouped_number(low) if low == high else f"{grouped_number(low)} to {grouped_number(high)}"
    instances = counted(sum(pair.instances for pair in pairs), "pair")
    unit = compared.comparison.budget.unit
    if unit == EqualCost.ATTEMPTS and span == "1":
        unit = "attempt"
    return compared.sides | {
        "equal budget": f"{span} {unit} an instance; {instances} of instances of {counted(len(pairs), 'task')}"
    }


def grouped_number(value: float) -> str:
    """Return a whole number with all digits, any other with three: `1,234`, `0.0125`."""
    return grouped(int(value)) if value == int(value) else f"{value:.3g}"


def _left_out(comparison: Comparison) -> list[str]:
    return [f"{reason}: {number:,}" for reason, number in comparison.left_out.items()]


def comparison_sections(compared: ComparedSides) -> list[Section]:
    """Return the conclusion, the counts of solved tasks, the speedups by task, and what is left out."""
    comparison = compared.comparison
    sections = [
        Section("Conclusion", tuple(_conclusion(comparison))),
        _solved_section(comparison),
        _speed_section(comparison),
        Section("Left out", tuple(f"{reason}." for reason in _left_out(comparison))),
    ]
    return [section for section in sections if not section.is_empty]


@dataclass(frozen=True, slots=True)
class NamedPair:
    """Two of several sides, by name."""

    names: tuple[str, str]
    comparison: Comparison


def compare_each(sides: Mapping[str, Sequence[AttemptRow]], budget: EqualCost) -> list[NamedPair]:
    """Return the comparison of each two of several named sides. Raises `ExtraMissing`."""
    return [*map(NamedPair, combinations(sides, 2), compare_all([*sides.values()], budget))]


def each_pair_section(pairs: Sequence[NamedPair]) -> Section:
    """Return a table with a row for each two sides."""
    budget = pairs[0].comparison.budget.unit
    return section_of(
        "Each two compared",
        EACH_PAIR,
        pairs,
        lambda pair: "|".join(pair.names),
        f"At equal {budget}. solved: tasks that A and B solved, of those that both tried. B to A: geometric mean of the "
        "speedups of B over those of A, over the tasks with a time on both sides.",
        f"p is corrected for {pairs[0].comparison.comparisons} comparisons (Holm); a difference is proven if p is at most {LEVEL}.",
    )


def _p_words(difference: Difference | None) -> str:
    if difference is None:
        return ""
    return f"{difference.p_corrected:.2g}" if difference.p_corrected >= 0.001 else "< 0.001"


def _solved_of(side: int) -> Field[NamedPair]:
    def count(pair: NamedPair) -> str:
        return grouped(sum(task.solved[side] for task in pair.comparison.pairs))

    return Field(Number(f"solved {SIDES[side]}"), count)


def _ratio_of(pair: NamedPair) -> str:
    speed = pair.comparison.speed
    if speed is None:
        return ""
    ends = f" [{ratio_words(speed.interval[0])}, {ratio_words(speed.interval[1])}]" if speed.interval else ""
    return f"{ratio_words(speed.value)}{ends}"


EACH_PAIR: tuple[Field[NamedPair], ...] = (
    Field(Column("A", keep=True), lambda pair: pair.names[0]),
    Field(Column("B", keep=True), lambda pair: pair.names[1]),
    Field(Number("tasks"), lambda pair: grouped(len(pair.comparison.pairs))),
    _solved_of(0),
    _solved_of(1),
    Field(Number("p solved"), lambda pair: _p_words(pair.comparison.solved)),
    Field(Number("timed"), lambda pair: grouped(len(pair.comparison.timed))),
    Field(Number("B to A [95 %]", if_known=True), _ratio_of),
    Field(Number("p speed", if_known=True), lambda pair: _p_words(pair.comparison.speed)),
    Field(
        Number("left out", if_known=True, drop=1),
        lambda pair: grouped(sum(pair.comparison.left_out.values())),
    ),
)


def _conclusion(comparison: Comparison) -> Iterator[str]:
    if comparison.solved is not None:
        yield _solved_words(comparison, comparison.solved)
    yield _speed_words(comparison)
    if comparison.comparisons > 1:
        yield (
            f"p is corrected for {comparison.comparisons} comparisons (Holm); a difference is proven if p is at most {LEVEL}. "
            "An interval is of one comparison alone."
        )


def _solved_words(comparison: Comparison, solved: Difference) -> str:
    both = sum(all(pair.solved) for pair in comparison.pairs)
    if solved.interval is None:
        return f"A and B solved the same {both} of {counted(solved.tasks, 'task')}: no difference is proven."
    ends, difference = solved.interval, round(solved.value)
    if difference < 0:
        ends = (-ends[1], -ends[0])
    differing = counted(len(comparison.only(0)) + len(comparison.only(1)), "task")
    interval = f"(95 %: {ends[0]:.1f} to {ends[1]:.1f}, over the {differing} that only one side solved)"
    if not difference:
        number = both + len(comparison.only(0))
        return f"A and B solved {number} of {counted(solved.tasks, 'task')} each {interval}: {_conclusion_words(solved)}."
    more = f"{counted(abs(difference), 'task')} more of {solved.tasks}"
    return f"{SIDES[difference > 0]} solved {more} {interval}: {_conclusion_words(solved)}."


def _speed_words(comparison: Comparison) -> str:
    speed = comparison.speed
    if speed is None:
        return f"Speeds are not compared: {_why_not_timed(comparison) or 'no task is solved by both'}."
    faster, slower = SIDES if speed.value < 1 else SIDES[::-1]
    value, ends = speed.value, speed.interval
    if value < 1:
        value, ends = 1 / value, ends and (1 / ends[1], 1 / ends[0])
    interval = f" (95 %: {ratio_words(ends[0])} to {ratio_words(ends[1])})" if ends is not None else ""
    conclusion = (
        _conclusion_words(speed)
        if ends is not None
        else f"fewer than {LEAST_TASKS} tasks cannot prove a difference"
    )
    tasks = f"the {speed.tasks} tasks" if speed.tasks > 1 else "the only task"
    speeds = f"the kernels of {faster} are {ratio_words(value)} as fast as those of {slower}"
    return f"On {tasks} with a time on both sides, {speeds}{interval}: {conclusion}."


def _conclusion_words(difference: Difference) -> str:
    words = _p_words(difference)
    p = f"p {words}" if words.startswith("<") else f"p = {words}"
    return f"the difference is {'' if difference.is_proven else 'not '}proven ({p})"


def _why_not_timed(comparison: Comparison) -> str:
    """Return why speedups of tasks that both solved are not compared: `2 tasks: other hardware or software`."""
    reasons: dict[str, int] = {}
    for pair in comparison.pairs:
        if all(pair.solved) and pair.log_ratio is None:
            reason = pair.apart or "no exact time on both sides within the budget"
            reasons[reason] = reasons.get(reason, 0) + 1
    return "; ".join(f"{counted(number, 'task')}: {reason}" for reason, number in reasons.items())


def _solved_section(comparison: Comparison) -> Section:
    tasks = {
        "both": [pair.task for pair in comparison.pairs if all(pair.solved)],
        "only A": comparison.only(0),
        "only B": comparison.only(1),
        "neither": [pair.task for pair in comparison.pairs if not any(pair.solved)],
    }
    sentences = (
        f"{side}, {grouped(len(own))}: {', '.join(map(short_task, own))}."
        for side, own in tasks.items()
        if own
    )
    return Section("Solved tasks", tuple(sentences))


def _speed_section(comparison: Comparison) -> Section:
    timed = sorted(comparison.timed, key=lambda pair: pair.log_ratio or 0.0)

    def speedup(side: int) -> Field[TaskPair]:
        return Field(
            Number(SIDES[side]), lambda pair: ratio_words(best.speedup) if (best := pair.best[side]) else ""
        )

    fields: tuple[Field[TaskPair], ...] = (
        Field(Column("task", keep=True), lambda pair: short_task(pair.task)),
        speedup(0),
        speedup(1),
        Field(Number("B to A"), lambda pair: ratio_words(math.exp(pair.log_ratio or 0.0))),
    )
    left_out = _why_not_timed(comparison)
    baselines = sorted(
        {best.against or "the baseline" for pair in timed if (best := pair.best[0]) is not None}
    )
    return section_of(
        "Speedups",
        fields,
        timed,
        lambda pair: f"task:{pair.task}",
        f"Speedup of each side's fastest attempt against {', '.join(baselines)}, as its verdict timed it.",
        f"Not compared: {left_out}." if left_out else "",
    )
