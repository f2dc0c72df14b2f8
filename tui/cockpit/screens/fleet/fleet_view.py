"""Rows of Fleet: a row a task, a cell an instance. Pure: the same facts give the same rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sessions.names import short_task, split_attempt
from sessions.state.ranking import estimated_slowdown
from tui.cockpit.draw.lines import Line, Span, cells, clean, fit
from tui.cockpit.screens.fleet.fleet_cells import FORMS, NARROW, TREND, Form, cell, cell_width, trend
from tui.cockpit.widgets.matrix import MatrixRow, Spot
from tui.facts import vocabulary
from tui.facts.instance import InstanceFacts, mark_of_best
from tui.facts.styles import speed_style
from tui.facts.tables import Cell

GAP = 2
LONGEST_TASK = 24
SHORTEST_TASK = 16
INTERVAL = 14
"""Cells of ` [1.79, 1.88]`."""
BEST = 7
ESTIMATE = 12
EXTRAS = ("trend", "cases", "gain", "spent", "by", "interval")
"""Columns in the order in which they are left out when space is short."""
WORDY = 4
"""Of these, so many are left out before the cells lose words."""
ORDERS = ("attention", "task", "best", "spent")
"""Orders of the rows; `o` takes the next."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskFacts:
    """What is known of a task, from its instances."""

    task: str
    instances: tuple[InstanceFacts, ...]
    """By number."""
    leader: InstanceFacts | None
    """The instance with the best correct attempt."""
    cost_usd: float | None
    tokens: int

    @property
    def needs_person(self) -> bool:
        """True if an instance waits for a person or repeats an error."""
        return any(facts.needs_person for facts in self.instances)

    @property
    def waits(self) -> bool:
        """True if an attempt waits for a person."""
        return any(facts.waiting for facts in self.instances)


@dataclass(frozen=True, slots=True)
class FleetLayout:
    """Which columns a width has room for, and in which form the cells are."""

    form: Form
    cell: int
    """Width of a cell."""
    shown: int
    """Cells in a row."""
    task: int
    """Width of the names of tasks."""
    best: int
    extras: frozenset[str]
    by: int
    """Width of the names of the best attempts: `#3/7`."""
    digits: int
    """Digits of the numbers of attempts."""
    named: bool
    """True if not all instances have a column, so that each cell names its instance."""


def task_facts(task: str, instances: Sequence[InstanceFacts]) -> TaskFacts:
    """Return the facts of a task."""
    costs = [facts.cost_usd for facts in instances if facts.cost_usd is not None]
    solved = [facts for facts in instances if facts.rank is not None]
    return TaskFacts(
        task,
        tuple(sorted(instances, key=lambda facts: facts.number)),
        max(solved, key=lambda facts: facts.rank or (0,), default=None),
        sum(costs) if costs else None,
        sum(facts.tokens for facts in instances),
    )


def in_order(tasks: Sequence[TaskFacts], order: str) -> list[TaskFacts]:
    """Return the tasks (given in the session's order) by `attention`, `task`, `best` or `spent`."""
    match order:
        case "attention":
            return sorted(tasks, key=lambda task: (not task.waits, not task.needs_person))
        case "best":
            return sorted(tasks, key=lambda task: -_best_value(task))
        case "spent":
            return sorted(tasks, key=lambda task: (-(task.cost_usd or 0.0), -task.tokens))
        case _:
            return list(tasks)


def layout(tasks: Sequence[TaskFacts], width: int, *, wanted: Collection[str] = EXTRAS) -> FleetLayout:
    """Return the richest layout that fits into `width` cells; `wanted` names the extra columns with content."""
    name = min(max((len(short_task(task.task)) for task in tasks), default=4), LONGEST_TASK)
    most = max((len(task.instances) for task in tasks), default=1)
    numbers = [facts.attempt for task in tasks for facts in task.instances]
    digits = len(str(max(numbers, default=1)))
    estimates = any(
        task.leader is not None and task.leader.speed is None and standing_estimate(task.leader)
        for task in tasks
    )
    best = ESTIMATE if estimates else BEST
    by = max((len(_by(task.leader)) for task in tasks), default=2)
    kept = [extra for extra in EXTRAS if extra in wanted]
    for form in FORMS:
        cell_cells = cell_width(form, digits)
        droppable = kept if form is NARROW else [extra for extra in kept if extra in EXTRAS[:WORDY]]
        for gone in range(len(droppable) + 1):
            extras = frozenset(kept) - set(droppable[:gone])
            for task_width in dict.fromkeys((name, min(name, SHORTEST_TASK))):
                if _fixed(task_width, best, by, extras) + most * cell_cells <= width:
                    return FleetLayout(
                        form, cell_cells, most, task_width, best, extras, by, digits, named=False
                    )
    task_width = min(name, SHORTEST_TASK)
    widest = len(str(max((facts.number for task in tasks for facts in task.instances), default=1))) + 2
    cell_cells = cell_width(NARROW, digits) + widest
    extras = frozenset(extra for extra in kept if width >= 100 and extra in ("interval", "by"))
    room = width - _fixed(task_width, best, by, extras) - len("+99 ")
    shown = max(1, room // cell_cells)
    return FleetLayout(NARROW, cell_cells, shown, task_width, best, extras, by, digits, named=most > 1)


def titles(form: FleetLayout, spent: str) -> Line:
    """Return the titles of the columns; `spent` is `spent` for money, else `tokens`."""
    parts = [fit("task", form.task), ""]
    words = "best [95 %]" if "interval" in form.extras else "best"
    parts.append(fit(words, _best_width(form)))
    text = "  " + (" " * GAP).join(part for part in parts if part)
    if "cases" in form.extras:
        text += "  cases"
    if "by" in form.extras:
        text += "  " + fit("by", form.by)
    text += "  "
    if form.named:
        text += fit("instances", form.shown * form.cell + len("+99 "))
    else:
        text += "".join(fit(f"#{number}", form.cell) for number in range(1, form.shown + 1))
    for extra, title, width in (("spent", spent, 6), ("gain", "last gain", 9)):
        if extra in form.extras:
            text += "  " + fit(title, width, right=True)
    if "trend" in form.extras:
        text += "  trend"
    return (Span(text, "head"),)


def row(
    task: TaskFacts, form: FleetLayout, *, changes: Mapping[str, str], now_wall: float, money: bool
) -> MatrixRow:
    """Return the row of a task; `changes` has the mark of each instance that changed lately."""
    leader = task.leader
    style = "warn" if task.waits else "bad"
    spans = [
        Span("! " if task.needs_person else "  ", style),
        Span(fit(clean(short_task(task.task)), form.task), "bold" if task.needs_person else ""),
        Span("  "),
        *_best_spans(leader, form),
    ]
    if "cases" in form.extras:
        partial = leader.speed if leader is not None else None
        words = f"{partial.cases}/{partial.all_cases}" if partial is not None else vocabulary.UNKNOWN
        spans.append(Span("  " + fit(words, 5), "dim"))
    if "by" in form.extras:
        spans.append(Span("  " + fit(_by(leader), form.by), "dim"))
    spans.append(Span("  "))
    shown = _shown(task, form)
    spots = []
    for facts in shown:
        first = len(spans)
        spans += cell(
            facts, form.form, digits=form.digits, change=changes.get(facts.key, ""), named=form.named
        )
        spots.append(Spot(facts.key, first, len(spans)))
        spans.append(Span(" " * (form.cell - sum(len(span.text) for span in spans[first:]))))
    spans.append(Span(" " * ((form.shown - len(shown)) * form.cell)))
    if form.named:
        hidden = len(task.instances) - len(shown)
        spans.append(Span(fit(f"+{hidden}" if hidden else "", len("+99 ")), "dim"))
    if "spent" in form.extras:
        spans.append(Span("  " + fit(_spent(task, money=money), 6, right=True), "dim"))
    if "gain" in form.extras:
        spans.append(Span("  " + fit(_gain(leader, now_wall), 9, right=True), "dim"))
    if "trend" in form.extras:
        spans.append(Span("  " + trend(task.instances), "dim"))
    texts = (Cell(task.task), *(Cell(f"{facts.key} {facts.doing.word}") for facts in shown))
    return MatrixRow(task.task, texts, line=tuple(spans), spots=tuple(spots))


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
        word = now.word.partition(":")[0] if now.letter != "t" else "timing"
        letter, style, number = states.get(word, (now.letter, now.style, 0))
        states[word] = (letter, style, number + 1)
    order = "gjtr?m=q.x"
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


def wanted_extras(tasks: Sequence[TaskFacts]) -> tuple[str, ...]:
    """Return the extra columns that have a value in at least one row."""
    speeds = [task.leader.speed for task in tasks if task.leader is not None]
    measured = [speed for speed in speeds if speed is not None]
    known = {
        "trend": any(facts.judged for task in tasks for facts in task.instances) and bool(measured),
        "gain": any(task.leader is not None for task in tasks),
        "spent": any(task.cost_usd is not None or task.tokens for task in tasks),
        "cases": any(speed.cases < speed.all_cases for speed in measured),
        "by": any(task.leader is not None for task in tasks),
        "interval": any(speed.interval is not None for speed in measured),
    }
    return tuple(extra for extra in EXTRAS if known[extra])


def standing_estimate(facts: InstanceFacts) -> float | None:
    """Return the estimated slowdown of a best that was not measured; `None` if there is no estimate."""
    evaluation = facts.best.evaluation if facts.best is not None else None
    return estimated_slowdown(evaluation) if evaluation is not None else None


def _fixed(task: int, best: int, by: int, extras: Collection[str]) -> int:
    """Cells of all columns but the instances."""
    widths = {"trend": TREND, "gain": 9, "spent": 6, "cases": 5, "by": by}
    interval = max(0, BEST + INTERVAL - best) if "interval" in extras else 0
    return (
        2
        + task
        + GAP
        + best
        + interval
        + 2
        + GAP
        + sum(GAP + width for extra, width in widths.items() if extra in extras)
    )


def _best_width(form: FleetLayout) -> int:
    return (max(form.best, BEST + INTERVAL) if "interval" in form.extras else form.best) + 2


def _best_spans(leader: InstanceFacts | None, form: FleetLayout) -> list[Span]:
    width = _best_width(form)
    if leader is None or leader.best is None:
        return [Span(fit(vocabulary.UNKNOWN, width - 2), "dim"), Span("  ")]
    mark = mark_of_best(leader.best)
    styles = {"?": "warn", "=": "good", "+": "good"}
    speed = leader.speed
    if speed is None:
        factor = standing_estimate(leader)
        text, style = "correct" if factor is None else f"est. {factor:.2f}x", "dim"
    else:
        text, style = (
            str(speed) if "interval" in form.extras else speed.figure.replace(" ", ""),
            speed_style(speed),
        )
    mark_style = styles.get(mark, "dim")
    if leader.best_has_findings:
        mark, mark_style = vocabulary.FINDING + mark, "warn"
    return [Span(fit(text, width - 2), style), Span(fit(mark, 2, right=True), mark_style)]


def _by(leader: InstanceFacts | None) -> str:
    if leader is None or leader.best is None:
        return vocabulary.UNKNOWN
    return f"#{leader.number}/{split_attempt(leader.best.attempt).number}"


def _shown(task: TaskFacts, form: FleetLayout) -> Sequence[InstanceFacts]:
    """All instances if there is room, else the most interesting ones; by number."""
    if len(task.instances) <= form.shown:
        return task.instances
    letters = "?mtjgr=q.x"

    def interest(facts: InstanceFacts) -> tuple[bool, bool, bool, int, int]:
        return (
            not facts.waiting,
            not facts.needs_person,
            facts is not task.leader,
            letters.find(facts.doing.letter),
            facts.number,
        )

    chosen = sorted(task.instances, key=interest)[: form.shown]
    return sorted(chosen, key=lambda facts: facts.number)


def _spent(task: TaskFacts, *, money: bool) -> str:
    if money:
        return vocabulary.UNKNOWN if task.cost_usd is None else f"${task.cost_usd:.2f}"
    return vocabulary.count(task.tokens) if task.tokens else vocabulary.UNKNOWN


def _gain(leader: InstanceFacts | None, now_wall: float) -> str:
    """Time since the best attempt was judged, in whole minutes: a row stays still for a minute."""
    if leader is None or leader.best is None or not leader.best.judged_wall:
        return vocabulary.UNKNOWN
    minutes = int(max(0.0, now_wall - leader.best.judged_wall) // 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h"


def _best_value(task: TaskFacts) -> float:
    speed = task.leader.speed if task.leader is not None else None
    return speed.value if speed is not None else 0.0
