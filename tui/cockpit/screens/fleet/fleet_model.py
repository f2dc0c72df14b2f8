"""What Fleet shows, kept between frames: rows are made again only for tasks whose instances changed."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from sessions.state.state import SessionState
from sessions.state.winners import place
from tui.cockpit.draw.lines import Line
from tui.cockpit.screens.fleet import fleet_view
from tui.cockpit.screens.fleet.fleet_view import FleetLayout, TaskFacts
from tui.cockpit.widgets.matrix import MatrixRow
from tui.facts.instance import FactsCache, InstanceFacts

CHANGED_S = 5.0
"""How long the cell of an instance that changed has a mark."""
UP, DOWN, CHANGED = "▴", "▾", "•"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A row and all that it was made from."""

    task: TaskFacts
    layout: FleetLayout
    changes: tuple[str, ...]
    minute: int
    money: bool
    row: MatrixRow


@dataclass(slots=True)
class FleetModel:
    """Facts, marks of change and rows of all tasks."""

    tasks: list[TaskFacts] = field(default_factory=list)
    """In the session's order."""
    layout: FleetLayout | None = None
    changes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By instance: mark, and until when it is shown, in monotonic seconds."""
    _width: int = 0
    _drawn: dict[str, _Drawn] = field(default_factory=dict)

    def update(self, state: SessionState, facts: FactsCache, now: float, *, jumped: bool) -> bool:
        """Take the facts as they are now; `jumped` if the state is another one. Returns whether a task changed."""
        by_task: dict[str, list[InstanceFacts]] = {
            task: [] for task in (state.started.tasks if state.started is not None else ())
        }
        for instance in facts.all(state):
            by_task.setdefault(instance.task, []).append(instance)
        before = {task.task: task for task in self.tasks}
        tasks: list[TaskFacts] = []
        for name, instances in by_task.items():
            known = before.get(name)
            if known is not None and _same(known.instances, instances):
                tasks.append(known)
                continue
            task = fleet_view.task_facts(name, instances)
            if known is not None and not jumped:
                self._mark(known, task, now)
            tasks.append(task)
        changed = len(tasks) != len(self.tasks) or any(
            new is not old for new, old in zip(tasks, self.tasks, strict=False)
        )
        self.tasks = tasks
        if jumped:
            self.changes.clear()
        return changed

    def rows(
        self,
        *,
        width: int,
        order: str,
        changed: bool,
        now: float,
        now_wall: float,
        columns: Collection[str] = fleet_view.EXTRAS,
    ) -> tuple[Line, list[MatrixRow]]:
        """Return titles and rows in an order; rows of unchanged tasks are the same objects as before."""
        wanted = [extra for extra in fleet_view.wanted_extras(self.tasks) if extra in columns]
        if changed or self.layout is None or width != self._width:
            self.layout = fleet_view.layout(self.tasks, width, wanted=wanted)
            self._width = width
        self.changes = {key: mark for key, mark in self.changes.items() if mark[1] > now}
        marks = {key: mark for key, (mark, _) in self.changes.items()}
        money = any(task.cost_usd is not None for task in self.tasks)
        minute = int(now_wall // 60)
        rows = [
            self._row(task, self.layout, marks, minute, now_wall, money=money)
            for task in fleet_view.in_order(self.tasks, order)
        ]
        return fleet_view.titles(self.layout, "spent" if money else "tokens"), rows

    def _row(
        self,
        task: TaskFacts,
        layout: FleetLayout,
        marks: Mapping[str, str],
        minute: int,
        now_wall: float,
        *,
        money: bool,
    ) -> MatrixRow:
        changes = tuple(marks.get(facts.key, "") for facts in task.instances)
        drawn = self._drawn.get(task.task)
        if drawn is None or (drawn.task, drawn.layout, drawn.changes, drawn.minute, drawn.money) != (
            task,
            layout,
            changes,
            minute,
            money,
        ):
            row = fleet_view.row(task, layout, changes=marks, now_wall=now_wall, money=money)
            drawn = self._drawn[task.task] = _Drawn(task, layout, changes, minute, money, row)
        return drawn.row

    def _mark(self, before: TaskFacts, task: TaskFacts, now: float) -> None:
        old = {facts.key: facts for facts in before.instances}
        for facts in task.instances:
            known = old.get(facts.key)
            if known is not None and known is not facts and (mark := _change(known, facts)):
                self.changes[facts.key] = (mark, now + CHANGED_S)


def _change(before: InstanceFacts, now: InstanceFacts) -> str:
    """`▴` for a better best, `▾` for a worse one, `•` for another verdict; nothing for another state."""
    if now.best is not None and (before.best is None or now.rank != before.rank):
        return UP if before.rank is None or place(now.best) > before.rank else DOWN
    if now.best is None and before.best is not None:
        return DOWN
    return CHANGED if len(now.history) != len(before.history) else ""


def _same(before: tuple[InstanceFacts, ...], instances: list[InstanceFacts]) -> bool:
    known = {facts.key: facts for facts in before}
    return len(known) == len(instances) and all(known.get(facts.key) is facts for facts in instances)
