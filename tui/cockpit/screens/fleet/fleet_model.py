"""The tasks of Fleet between two frames, with marks at the cells that changed."""

from __future__ import annotations

from dataclasses import dataclass, field

from sessions.state.state import SessionState
from sessions.state.winners import place
from tui.cockpit.screens.fleet.fleet_view import TaskFacts, task_facts
from tui.facts.instance import FactsCache, InstanceFacts

CHANGED_S = 5.0
"""How long the cell of an instance that changed has a mark."""
UP, DOWN, CHANGED = "▴", "▾", "•"


@dataclass(slots=True)
class FleetModel:
    """Facts of all tasks, and marks of change."""

    tasks: list[TaskFacts] = field(default_factory=list)
    """In the session's order."""
    _changes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By instance: mark, and until when it is shown, in monotonic seconds."""

    def update(
        self, state: SessionState, facts: FactsCache, now: float, *, now_wall: float, jumped: bool
    ) -> bool:
        """Take the facts as they are now; `jumped` if the state is a different one. Returns whether a task changed.

        `now_wall` is the present time in seconds since the epoch: what happened earlier than `CHANGED_S` has no mark.
        """
        before = {instance.key: instance for task in self.tasks for instance in task.instances}
        instances = facts.all(state)
        if jumped:
            self._changes.clear()
        elif self.tasks and set(instances) == set(before.values()):
            return False
        by_task: dict[str, list[InstanceFacts]] = {
            task: [] for task in (state.started.tasks if state.started is not None else ())
        }
        for instance in instances:
            by_task.setdefault(instance.task, []).append(instance)
            earlier = before.get(instance.key, instance)
            if jumped or not (mark := _change(earlier, instance)):
                continue
            member = state.instances[instance.key]
            judged = [attempt.judged_wall for attempt in member.attempts]
            happened = member.last_wall if instance.history == earlier.history else max(judged)
            if now_wall - happened < CHANGED_S:
                self._changes[instance.key] = (mark, now + CHANGED_S)
        self.tasks = [task_facts(task, members) for task, members in by_task.items()]
        return True

    def marks(self, now: float) -> dict[str, str]:
        """Return the marks that are shown now, by instance."""
        self._changes = {key: mark for key, mark in self._changes.items() if mark[1] > now}
        return {key: mark for key, (mark, _) in self._changes.items()}


def _change(before: InstanceFacts, now: InstanceFacts) -> str:
    """`▴` for a better best, `▾` for a worse one, `•` for another verdict; nothing for another state."""
    if now.best is not None and (before.best is None or now.rank != before.rank):
        return UP if before.rank is None or place(now.best) > before.rank else DOWN
    if now.best is None and before.best is not None:
        return DOWN
    return CHANGED if len(now.history) != len(before.history) else ""
