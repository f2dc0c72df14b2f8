"""Rows of the tree: task, instance, attempt, call, with tokens, money and device time summed upward. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sessions.names import short_task, split_attempt
from sessions.speedups import Speedup, attempt_speedup
from sessions.state import AttemptState, CallState, InstanceState, SessionState
from tui import vocabulary
from tui.cockpit import views
from tui.cockpit.fleet_view import speedup_style, task_facts
from tui.cockpit.lines import clean
from tui.cockpit.standing import verdict_style
from tui.instance_facts import FactsCache, InstanceFacts, mark_of_best
from tui.tables import Cell, Column, Row

WIDE = 110
"""From this width on, states are whole words and the best speedups have their intervals."""
OPEN, CLOSED, LEAF = "▾ ", "▸ ", "  "
TASK = "task:"
"""Begin of the keys of tasks; other keys are the names of instances, attempts and calls."""


def columns(width: int) -> tuple[Column, ...]:
    """Return the columns for a screen of this width."""
    best = Column("best [95 %]", 20, 22) if width >= WIDE else Column("best", 7, 9)
    return (
        Column("task, instance, attempt, call", 29, 60),
        Column("state", 16, 16) if width >= WIDE else Column("state", 8, 8),
        Column("verdicts", 14, 40),
        best,
        Column("tokens in", 9, 9, right=True, drop=3, if_known=True),
        Column("out", 6, 6, right=True, drop=3, if_known=True),
        Column("cost", 7, 9, right=True, drop=2, if_known=True),
        Column("on GPUs", 7, 8, right=True, drop=4, if_known=True),
    )


def tree_rows(state: SessionState, facts: FactsCache, unfolded: Collection[str], *, wide: bool) -> list[Row]:
    """Return the rows of all tasks, and of what is inside those that are unfolded."""
    by_task: dict[str, list[InstanceState]] = {
        task: [] for task in (state.started.tasks if state.started is not None else ())
    }
    for instance in views.ordered_instances(state):
        by_task.setdefault(instance.task, []).append(instance)
    rows: list[Row] = []
    for task, instances in by_task.items():
        key = TASK + task
        rows.append(
            _task_row(
                key,
                task,
                [facts.of(state, instance) for instance in instances],
                unfolded,
                wide=wide,
            )
        )
        if key in unfolded:
            for instance in instances:
                rows += _instance_rows(instance, facts.of(state, instance), unfolded, wide=wide)
    return rows


def parent_of(key: str, state: SessionState) -> str | None:
    """Return the key of the row that a row is in; `None` for a task."""
    if key.startswith(TASK):
        return None
    if key in state.instances:
        return TASK + state.instances[key].task
    attempt = attempt_of(key)
    return key.rpartition("/")[0] if attempt is None or key == attempt else attempt


def attempt_of(key: str) -> str | None:
    """Return the attempt that a row is about, or that its call belongs to; `None` for an instance or a task."""
    task, mark, rest = key.rpartition("#")
    numbers = rest.split("/")
    if key.startswith(TASK) or not mark or len(numbers) < 2:
        return None
    return f"{task}#{numbers[0]}/{numbers[1]}"


def instance_of(key: str, state: SessionState) -> InstanceState | None:
    """Return the instance that a row is about; `None` for a task."""
    attempt = attempt_of(key)
    return state.instances.get(split_attempt(attempt).instance if attempt is not None else key)


def can_unfold(key: str, state: SessionState) -> bool:
    """Return whether something is inside a row."""
    if key.startswith(TASK):
        return any(TASK + instance.task == key for instance in state.instances.values())
    if key in state.instances:
        return bool(state.instances[key].attempts)
    instance = instance_of(key, state)
    attempts = instance.attempts if instance is not None else []
    return any(attempt.attempt == key and attempt.calls for attempt in attempts)


def _task_row(
    key: str, task: str, instances: Sequence[InstanceFacts], unfolded: Collection[str], *, wide: bool
) -> Row:
    whole = task_facts(task, instances)
    judged, correct = sum(f.judged for f in instances), sum(f.correct for f in instances)
    words = f"{correct} of {judged} correct" if judged else "no verdict yet"
    failed = sum(f.doing.letter == "x" for f in instances)
    done = sum(f.finished for f in instances) - failed
    state = f"{done}/{len(instances)} done" if instances else "queued"
    state += f", {failed} failed" if failed else ""
    leader = whole.leader
    return _row(
        key,
        _name(clean(short_task(task)), 0, _sign(key, unfolded, inside=bool(instances))),
        Cell(state, "dim"),
        Cell(words, "dim"),
        _best(leader.speedup, leader.best, wide=wide)
        if leader is not None
        else Cell(vocabulary.UNKNOWN, "dim"),
        sum(f.read_tokens for f in instances),
        sum(f.written_tokens for f in instances),
        whole.cost_usd,
        sum(f.device_s for f in instances),
        style="bold",
    )


def _instance_rows(
    instance: InstanceState, facts: InstanceFacts, unfolded: Collection[str], *, wide: bool
) -> Iterator[Row]:
    letters = "".join(vocabulary.letter(attempt.verdict) for attempt in instance.attempts)
    yield _row(
        instance.key,
        _name(instance.key, 1, _sign(instance.key, unfolded, inside=bool(instance.attempts))),
        Cell(facts.doing.word if wide else _short(facts), facts.doing.style),
        Cell(letters or vocabulary.UNKNOWN),
        _best(facts.speedup, facts.best, wide=wide),
        facts.read_tokens,
        facts.written_tokens,
        facts.cost_usd,
        facts.device_s,
    )
    if instance.key in unfolded:
        for attempt in instance.attempts:
            yield from _attempt_rows(attempt, unfolded, wide=wide)


def _attempt_rows(attempt: AttemptState, unfolded: Collection[str], *, wide: bool) -> Iterator[Row]:
    sign = _sign(attempt.attempt, unfolded, inside=bool(attempt.calls))
    base = f" of {attempt.base}" if attempt.base else ""
    verdict = attempt.verdict
    words = (
        "no verdict yet" if verdict is None else f"{vocabulary.letter(verdict)} {vocabulary.words(verdict)}"
    )
    speedup = attempt_speedup(attempt)
    yield _row(
        attempt.attempt,
        _name(f"{attempt.attempt}  {attempt.origin.value}{base}", 2, sign),
        Cell(_attempt_state(attempt), "warn" if attempt.waiting else "dim"),
        Cell(words, _verdict_style(attempt, speedup)),
        _best(speedup, attempt, wide=wide),
        attempt.usage.input_tokens or 0,
        attempt.usage.output_tokens or 0,
        attempt.cost_usd,
        attempt.device_s,
    )
    if attempt.attempt in unfolded:
        yield from (_call_row(call) for call in attempt.calls)


def _call_row(call: CallState) -> Row:
    state, style = (
        ("failed", "bad") if call.failed else ("done", "dim") if call.finished else ("live", "busy")
    )
    retries = f", try {call.retries + 1}" if call.retries else ""
    words = vocabulary.seconds(call.seconds) if call.finished else clean(call.failed).split("\n")[0]
    return _row(
        call.call,
        _name(f"{call.role.value} {call.call.rpartition('/')[2]}  {clean(call.model)}", 3, LEAF),
        Cell(f"{state}{retries}", style),
        Cell(words or vocabulary.UNKNOWN, "bad" if call.failed else "dim"),
        Cell(""),
        call.usage.input_tokens or 0,
        call.usage.output_tokens or 0,
        call.cost_usd,
        0.0,
    )


def _row(
    key: str,
    name: Cell,
    state: Cell,
    verdicts: Cell,
    best: Cell,
    read_tokens: int,
    written_tokens: int,
    cost_usd: float | None,
    device_s: float,
    *,
    style: str = "",
) -> Row:
    return Row(
        key,
        (
            name,
            state,
            verdicts,
            best,
            _known(vocabulary.count(read_tokens) if read_tokens else ""),
            _known(vocabulary.count(written_tokens) if written_tokens else ""),
            _known(vocabulary.money(cost_usd) if cost_usd is not None else ""),
            _known(vocabulary.seconds(device_s) if device_s else ""),
        ),
        style,
    )


def _known(text: str) -> Cell:
    return Cell(text or vocabulary.UNKNOWN, "" if text else "dim")


def _name(text: str, depth: int, sign: str) -> Cell:
    return Cell(f"{'  ' * depth}{sign}{text}")


def _sign(key: str, unfolded: Collection[str], *, inside: bool) -> str:
    return LEAF if not inside else OPEN if key in unfolded else CLOSED


def _best(speedup: Speedup | None, attempt: AttemptState | None, *, wide: bool) -> Cell:
    if speedup is None:
        return Cell(vocabulary.UNKNOWN, "dim")
    text = vocabulary.signed_times(speedup.value, speedup.bound)
    if wide and speedup.interval is not None:
        text = f"{text} {vocabulary.interval(*speedup.interval)}"
    mark = mark_of_best(attempt) if attempt is not None else ""
    return Cell(f"{text} {mark}".rstrip(), speedup_style(speedup))


def _short(facts: InstanceFacts) -> str:
    """The state in eight cells: `judge`, `timing`, `generate`."""
    return "timing" if facts.doing.letter == "t" else facts.doing.word.partition(":")[0]


def _attempt_state(attempt: AttemptState) -> str:
    if attempt.waiting:
        return "review"
    if attempt.decision is not None:
        return "accepted" if attempt.decision.accepted else "rejected"
    return "judged" if attempt.evaluation is not None else attempt.word.replace("wait", "queued")


def _verdict_style(attempt: AttemptState, speedup: Speedup | None) -> str:
    if attempt.verdict is None:
        return "dim"
    style = verdict_style(attempt.verdict)
    return style if style != "good" or (speedup is not None and speedup.is_gain) else ""
