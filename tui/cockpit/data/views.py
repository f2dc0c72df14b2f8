"""Facts of a session that several screens show. Pure functions of the state."""

from __future__ import annotations

from sessions.state.state import InstanceState, SessionState
from tui.facts.doing import busy_attempts, doing, live_calls
from tui.facts.tables import Cell


def ordered_instances(state: SessionState) -> list[InstanceState]:
    """Return the instances by the session's order of tasks, then by number."""
    tasks = {task: place for place, task in enumerate(state.started.tasks)} if state.started else {}
    return sorted(
        state.instances.values(),
        key=lambda instance: (tasks.get(instance.task, len(tasks)), instance.task, instance.instance),
    )


def doing_cell(state: SessionState, instance: InstanceState) -> Cell:
    """Return an instance's state with the thousands of characters of the reply so far; of several attempts their number."""
    now = doing(state, instance)
    busy = busy_attempts(instance)
    written = sum(len(call.text) + len(call.reasoning) for call in live_calls(instance))
    streamed = f" {written / 1000:.1f}k characters" if written and now.letter in "gr" else ""
    if len(busy) > 1 and now.style == "busy":
        same = [attempt for attempt in busy if attempt.word == instance.word]
        others = f" +{len(busy) - len(same)}" if len(same) < len(busy) else streamed
        return Cell(f"{len(same)} {now.word}{others}", now.style)
    return Cell(f"{now.word}{streamed}", now.style)
