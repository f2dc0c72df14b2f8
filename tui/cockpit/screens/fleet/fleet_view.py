"""Fleet's table: a row a task, a cell an instance. Pure: the same facts give the same table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from sessions.names import short_task, split_attempt
from sessions.state.speed import Speed, fastest_first
from sessions.state.state import AttemptState
from sessions.state.winners import best_of
from tui.cockpit.draw.lines import Line, Span, cells, clean
from tui.cockpit.screens.fleet.fleet_cells import (
    MEDIUM,
    NARROW,
    WIDE,
    WORD,
    Form,
    instance_cell,
)
from tui.facts import vocabulary
from tui.facts.evaluation.counted import traffic_change
from tui.facts.instance import InstanceFacts, mark_of_best
from tui.facts.tables import GAP, NOTHING, Cell, Column, Number, Row, Table
from tui.facts.vocabulary import UNKNOWN, speed_style

LONGEST_TASK = 24
SHORTEST_TASK = 16
BEST, INTERVAL = 7, 14
"""Least width of a best and of its interval: columns stay where they are when the first speedup is measured."""
EXTRAS = ("cases", "gain", "spent", "by", "interval")
"""Columns in the order in which they are left out when space is short."""
DROPS = {extra: order for order, extra in enumerate(reversed(EXTRAS), start=1)}
LASTING = ("by", "interval")
"""The cells lose their words before these columns go."""
ROOMY = 100
"""From this width on, the lasting columns stay also where not all instances fit."""
CELL_GAP = {WIDE: GAP + 1, MEDIUM: GAP + 1, NARROW: 1}
"""Cells before each instance, by the form of the cells."""
HIDDEN = len("+99")
"""Cells of the number of instances that are not shown."""
ORDERS = ("attention", "task", "best", "spent")
"""Orders of the rows; `o` takes the next."""
MARK_STYLES = {"?": "warn", "=": "good", "+": "good", "+=": "good"}
"""Styles of the marks of a best."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskFacts:
    """What is known of a task, from its instances."""

    task: str
    instances: tuple[InstanceFacts, ...]
    """By number."""
    first: AttemptState | None
    """The first correct attempt."""
    leader: InstanceFacts | None
    """The instance with the best correct attempt."""
    cost_usd: float | None
    tokens: int

    @property
    def needs_person(self) -> bool:
        """True if an instance waits for a person or repeats an error."""
        return any(facts.needs_person for facts in self.instances)

    @property
    def speed(self) -> Speed | None:
        """The measured speed of the best attempt."""
        return self.leader.speed if self.leader is not None else None

    @property
    def waits(self) -> bool:
        """True if an attempt waits for a person."""
        return any(facts.waiting for facts in self.instances)


def task_facts(task: str, instances: Sequence[InstanceFacts]) -> TaskFacts:
    """Return the facts of a task."""
    costs = [facts.cost_usd for facts in instances if facts.cost_usd is not None]
    best = best_of(facts.best for facts in instances if facts.best is not None)
    return TaskFacts(
        task,
        tuple(sorted(instances, key=lambda facts: facts.number)),
        min(filter(None, (facts.first for facts in instances)), key=attrgetter("judged_seq"), default=None),
        next((facts for facts in instances if best is not None and facts.best is best), None),
        sum(costs) if costs else None,
        sum(facts.tokens for facts in instances),
    )


def in_order(tasks: Sequence[TaskFacts], order: str) -> list[TaskFacts]:
    """Return the tasks (given in the session's order) by `attention`, `task`, `best` or `spent`."""
    match order:
        case "attention":
            return sorted(tasks, key=lambda task: (not task.waits, not task.needs_person))
        case "best":
            return fastest_first(tasks, lambda task: task.speed)
        case "spent":
            return sorted(tasks, key=lambda task: (-(task.cost_usd or 0.0), -task.tokens))
        case _:
            return list(tasks)


class FleetColumn(NamedTuple):
    """A column with its cells, one for each task."""

    column: Column
    cells: Sequence[Cell]
    extra: str = ""
    """Its name in `EXTRAS`; empty if it is never left out."""


def fleet_table(
    tasks: Sequence[TaskFacts],
    width: int,
    *,
    changes: Mapping[str, str],
    worked_s: float,
) -> tuple[Form, Table]:
    """Return the richest form of the cells that fits into `width` cells, and the table.

    `changes` has the mark of each instance that changed lately; `worked_s` is the session's clock now, in seconds.
    """
    most = max((len(task.instances) for task in tasks), default=1)
    without_interval = [extra for extra in EXTRAS if extra != "interval"]
    spent = _columns_of_effort(tasks, worked_s)
    is_measured = any(task.speed is not None for task in tasks)
    richest = (
        [(WIDE, EXTRAS), (MEDIUM, EXTRAS)] if is_measured else [(MEDIUM, EXTRAS), (MEDIUM, without_interval)]
    )
    forms = [*richest, (NARROW, EXTRAS), (NARROW, without_interval)]
    for form, names in forms:
        columns = [*_columns_about(tasks, names), *_instances(tasks, form, most, changes), *spent]
        table = _table(tasks, columns, form, names)
        if _least_width(table) <= width:
            return form, table
    lasting = LASTING if width >= ROOMY else ()
    about = _columns_about(tasks, lasting)
    room = width - _least_width(_table(tasks, about, WIDE, lasting)) - HIDDEN - GAP
    shown = max(1, room // (_cell_width(tasks, NARROW, named=True) + CELL_GAP[NARROW]))
    columns = [*about, *_instances(tasks, NARROW, shown, changes)]
    return NARROW, _table(tasks, columns, WIDE, lasting)


def _table(
    tasks: Sequence[TaskFacts], columns: Sequence[FleetColumn], form: Form, wanted: Collection[str]
) -> Table:
    """Return the table without the columns that are unknown or not wanted."""
    kept = [
        part
        for part in columns
        if not part.extra or (part.extra in wanted and any(cell.text not in NOTHING for cell in part.cells))
    ]
    droppable = EXTRAS if form is NARROW else [extra for extra in EXTRAS if extra not in LASTING]
    return Table(
        "",
        tuple(
            replace(column, drop=DROPS[extra]) if extra in droppable else column for column, _, extra in kept
        ),
        tuple(
            Row(task.task, cells)
            for task, cells in zip(tasks, zip(*(part.cells for part in kept), strict=True), strict=True)
        ),
    )


def _least_width(table: Table) -> int:
    """Return the width of the columns that are never left out."""
    return sum((column.least or 0) + column.gap for column in table.columns if not column.drop) - GAP


def _instances(
    tasks: Sequence[TaskFacts], form: Form, shown: int, changes: Mapping[str, str]
) -> list[FleetColumn]:
    """Return the columns of the `shown` most interesting instances of each task.

    If a task has more, each cell names its instance, and a last column has the number of those that are not shown.
    """
    named = any(len(task.instances) > shown for task in tasks)
    width, digits = _cell_width(tasks, form, named=named), _digits(tasks)
    chosen = [_most_interesting(task, shown) for task in tasks]
    columns = []
    for place in range(shown):
        title = f"#{place + 1}" if not named else "" if place else "instance"
        if form.speedup:
            title = f"{title:<{WORD + 1 + digits}} best"
        cells = [
            instance_cell(
                facts[place], form, digits=digits, change=changes.get(facts[place].key, ""), named=named
            )
            if place < len(facts)
            else Cell("")
            for facts in chosen
        ]
        gap = CELL_GAP[form] if place or form.words else GAP
        columns.append(FleetColumn(Column(title, width, width, gap=gap), cells))
    if named:
        hidden = [len(task.instances) - len(facts) for task, facts in zip(tasks, chosen, strict=True)]
        more = [Cell(f"+{number}" if number else "", "dim") for number in hidden]
        columns.append(FleetColumn(Column("", HIDDEN, HIDDEN, gap=0), more))
    return columns


def _cell_width(tasks: Sequence[TaskFacts], form: Form, *, named: bool) -> int:
    widest = max((facts.number for task in tasks for facts in task.instances), default=1)
    return form.width(_digits(tasks)) + (len(f"#{widest} ") if named else 0)


def _digits(tasks: Sequence[TaskFacts]) -> int:
    """Return the digits of the numbers of attempts."""
    numbers = [facts.attempt for task in tasks for facts in task.instances]
    return max(2, len(str(max(numbers, default=1))))


def _columns_about(tasks: Sequence[TaskFacts], wanted: Collection[str]) -> list[FleetColumn]:
    """Return the columns left of the instances: the task and its best."""
    name = min(max((len(short_task(task.task)) for task in tasks), default=4), LONGEST_TASK)
    speeds = [task.speed for task in tasks]
    in_part = any(speed is not None and speed.cases < speed.all_cases for speed in speeds)
    has_interval = "interval" in wanted and any(speed is not None and speed.interval for speed in speeds)
    bests = [_best_cell(task, has_interval=has_interval, has_first="interval" in wanted) for task in tasks]
    least = max([BEST + INTERVAL * has_interval, *(len(cell.text) + 1 for cell in bests)])
    cases = [f"{speed.cases}/{speed.all_cases}" if speed and in_part else UNKNOWN for speed in speeds]
    return [
        FleetColumn(
            Column("", 1, 1),
            [Cell("!" if task.needs_person else "", "warn" if task.waits else "bad") for task in tasks],
        ),
        FleetColumn(
            Column("task", min(name, SHORTEST_TASK), LONGEST_TASK, gap=1),
            [Cell(clean(short_task(task.task)), "bold" if task.needs_person else "") for task in tasks],
        ),
        FleetColumn(Column("best [95 %]" if has_interval else "best", least), bests),
        FleetColumn(Number("", 2, 3, gap=0), [_mark_cell(task.leader) for task in tasks]),
        FleetColumn(Column("cases", 5, 5), [Cell(text, "dim") for text in cases], "cases"),
        FleetColumn(Column("by", 4), [Cell(_by(task.leader), "dim") for task in tasks], "by"),
    ]


def _columns_of_effort(tasks: Sequence[TaskFacts], worked_s: float) -> list[FleetColumn]:
    """Return the columns right of the instances."""
    money = any(task.cost_usd is not None for task in tasks)
    spent = [_spent(task, money=money) for task in tasks]
    gains = [_gain(task.leader, worked_s) for task in tasks]
    return [
        FleetColumn(
            Number("spent" if money else "tokens", 6), [Cell(text, "dim") for text in spent], "spent"
        ),
        FleetColumn(Number("last gain", 9), [Cell(text, "dim") for text in gains], "gain"),
    ]


def counts(facts: Iterable[InstanceFacts], *, short: bool) -> list[Span]:
    """Return how many instances are in each state: `generate 31 · judge 40`, or `g31 j40` where space is short."""
    spans: list[Span] = []
    for word, letter, style, number in state_words(facts):
        if spans:
            spans.append(Span(" " if short else " · ", "dim"))
        spans.append(Span(f"{letter}{number}" if short else f"{word} {number}", style))
    return spans


def state_words(facts: Iterable[InstanceFacts]) -> list[tuple[str, str, str, int]]:
    """Return (word, letter, style, number of instances) of each state that an instance is in."""
    states: dict[str, tuple[str, str, int]] = {}
    for instance in facts:
        now = instance.doing
        word = now.state if now.letter != "t" else "timing"
        letter, style, number = states.get(word, (now.letter, now.style, 0))
        states[word] = (letter, style, number + 1)
    order = "gjtr?mpq.x"
    return [(word, *state) for word, state in sorted(states.items(), key=lambda item: order.find(item[1][0]))]


def rule(name: str, middle: Sequence[Span], right: str, width: int, *, focused: bool = False) -> Line:
    """Return `Tasks 20 ─ generate 31 · judge 40 ───── order: attention`; `right` goes first, then `middle`."""
    left = [Span(f" {name} ", "bold" if focused else "head")]
    if middle and cells(left) + cells(middle) + 4 <= width:
        left += [Span("─ ", "dim"), *middle, Span(" ")]
    if right and cells(left) + len(right) + 4 <= width:
        fill = width - cells(left) - len(right) - 2
        return (*left, Span("─" * fill, "dim"), Span(f" {right} ", "dim"))
    return (*left, Span("─" * max(0, width - cells(left)), "dim"))


def _best_cell(task: TaskFacts, *, has_interval: bool, has_first: bool) -> Cell:
    leader = task.leader
    if leader is None or leader.best is None:
        return Cell(UNKNOWN, "dim")
    if leader.speed is None:
        evaluation = leader.best.evaluation
        first = task.first.evaluation if has_first and task.first is not None else None
        return Cell((traffic_change(first, evaluation) if evaluation is not None else "") or "correct", "dim")
    text = str(leader.speed) if has_interval else leader.speed.figure.replace(" ", "")
    return Cell(text, speed_style(leader.speed))


def _mark_cell(leader: InstanceFacts | None) -> Cell:
    mark = mark_of_best(leader.best) if leader is not None and leader.best is not None else ""
    if leader is not None and leader.best_has_findings:
        return Cell(vocabulary.FINDING + mark, "warn")
    return Cell(mark, MARK_STYLES.get(mark, "dim"))


def _by(leader: InstanceFacts | None) -> str:
    if leader is None or leader.best is None:
        return UNKNOWN
    return f"#{leader.number}/{split_attempt(leader.best.attempt).number}"


def _most_interesting(task: TaskFacts, shown: int) -> Sequence[InstanceFacts]:
    """All instances if there is room, else the most interesting ones; by number."""
    if len(task.instances) <= shown:
        return task.instances
    letters = "?mtjgrpq.x"

    def interest(facts: InstanceFacts) -> tuple[bool, bool, bool, int, int]:
        return (
            not facts.waiting,
            not facts.needs_person,
            facts is not task.leader,
            letters.find(facts.doing.letter),
            facts.number,
        )

    chosen = sorted(task.instances, key=interest)[:shown]
    return sorted(chosen, key=lambda facts: facts.number)


def _spent(task: TaskFacts, *, money: bool) -> str:
    if money:
        return UNKNOWN if task.cost_usd is None else f"${task.cost_usd:.2f}"
    return vocabulary.count(task.tokens) if task.tokens else UNKNOWN


def _gain(leader: InstanceFacts | None, worked_s: float) -> str:
    """Time since the best attempt was judged, in whole minutes: a row stays still for a minute."""
    if leader is None or leader.best is None:
        return UNKNOWN
    minutes = int(max(0.0, worked_s - leader.best.judged_worked_s) // 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h"
