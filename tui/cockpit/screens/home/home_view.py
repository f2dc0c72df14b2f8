"""The list of sessions as rows: what ran, what runs, what waits. Pure: the same list, the same rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from harness.wire.device import is_cpu
from sessions.state.speed import fastest_first
from tui.cockpit.draw.lines import Line, Span, cells, clean, line
from tui.facts import vocabulary
from tui.facts.doing import preparing
from tui.facts.node_facts import NodeFacts, node_words
from tui.facts.session_fields import fastest
from tui.facts.settings_words import method_words, task_words
from tui.facts.tables import Cell, Column, Number, Row
from tui.facts.vocabulary import UNKNOWN, next_command

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo

COLUMNS = (
    Column("session", 26, 40),
    Column("method", 4, 60, drop=6, inner_cut=True),
    Column("model", 8, 28, drop=7),
    Number("solved", 6, 7),
    Number("confirmed", 9, 9, drop=3, if_known=True),
    Number("attempts", 8, 8, drop=2),
    Column("best, 95 %", most=24, keep=True),
    Column("of task", 8, 24, drop=1, if_known=True),
    Number("cost", most=18, drop=4),
    Number("time", most=9, drop=5),
    Column("state", most=14, keep=True),
)
ORDERS = ("newest", "best speedup", "cost", "waits first")


def ordered(infos: Iterable[SessionInfo], order: str) -> list[SessionInfo]:
    """Return the sessions in one of `ORDERS`; equal ones newest first, unknown values last."""
    newest = sorted(infos, key=lambda info: info.name, reverse=True)
    if order == "best speedup":
        return fastest_first(newest, lambda info: fastest([info])[1])
    keys: Mapping[str, Callable[[SessionInfo], float]] = {
        "cost": lambda info: -(info.cost_usd or 0.0),
        "waits first": lambda info: -len(info.waiting),
    }
    return sorted(newest, key=keys[order]) if order in keys else newest


def session_row(info: SessionInfo) -> Row:
    """Return one session in one line."""
    return Row(
        info.name,
        (
            Cell(clean(info.title) or info.name),
            Cell(clean(method_words(info.settings.method, info.settings.options)) or UNKNOWN, "dim"),
            Cell(clean(info.settings.model) or UNKNOWN, "dim"),
            Cell(f"{len(info.solved)}/{len(info.settings.tasks)}" if info.settings.tasks else UNKNOWN),
            Cell(UNKNOWN if info.confirmed is None else str(len(info.confirmed)), "dim"),
            Cell(f"{info.attempts:,}"),
            best_cell(info),
            Cell(clean(fastest([info])[0].rpartition("/")[2]) or UNKNOWN),
            Cell(cost_words(info), "dim"),
            Cell("-" if info.worked_s is None else vocabulary.clock(info.worked_s), "dim"),
            waits_cell(info),
        ),
    )


def best_cell(info: SessionInfo) -> Cell:
    """Return the best measured speedup of the session with its interval; in words if there was no GPU to measure on."""
    best = fastest([info])[1]
    if best is not None:
        return Cell(str(best), vocabulary.speed_style(best))
    if info.settings.devices and all(map(is_cpu, info.settings.devices)) and info.solved:
        return Cell(vocabulary.NO_GPU, "dim")
    return Cell("-", "dim")


def cost_words(info: SessionInfo) -> str:
    """Return what was spent, with the cap: `$14.20 of $50`."""
    spent = vocabulary.money(info.cost_usd)
    if info.settings.budget_usd is not None:
        return f"{spent} of ${info.settings.budget_usd:g}"
    return spent


def waits_cell(info: SessionInfo) -> Cell:
    """Return what waits for a person, else how the session ended, else what was accepted."""
    state = info.state.value
    if info.waiting and state == "running":
        return Cell(f"! {vocabulary.counted(len(info.waiting), 'review')}", "warn")
    if state in ("stopped", "crashed", "damaged", "not stored"):
        return Cell(state, "dim" if state == "stopped" else "bad")
    if info.accepted:
        return Cell(f"{len(info.accepted)} accepted")
    if info.waiting:
        return Cell(f"{len(info.waiting)} not decided", "dim")
    if state != "running":
        return Cell("finished", "dim")
    return Cell("preparing" if info.preparing and not info.attempts else "running", "busy")


def about_line(info: SessionInfo, now: float = 0.0) -> Line:
    """Return the session under the cursor in words: the command that goes on with it, what it prepares, its tasks."""
    state = info.state.value
    if info.problem:
        return (Span("damaged  ", "bad"), *line(clean(info.problem)))
    command = next_command(info.name, running=state == "running", finished=state == "finished")
    words = f"{state}, started {vocabulary.moment(info.started)} UTC, {task_words(info.settings.tasks)}"
    prepared = "; ".join(preparing(info.preparing, now))
    return (
        Span(f"{command}  ", "key"),
        *line(f"{prepared}  " if prepared else "", "busy"),
        *line(words, "dim"),
    )


def header_line(node: NodeFacts | None, infos: Collection[SessionInfo], *, width: int) -> Line:
    """Return Wavedeck, the node, and at the right what runs and what waits; the node is cut first."""
    name = f"Wavedeck {node.version}".rstrip() if node is not None else "Wavedeck"
    running = sum(info.state.value == "running" for info in infos)
    waiting = sum(len(info.waiting) for info in infos if info.state.value == "running")
    right: list[Span] = [Span(f"{running} running", "busy" if running else "dim")]
    if waiting:
        right += [Span(" · "), Span(f"! {vocabulary.counted(waiting, 'review')} for you", "warn")]
    words = node_words(node) if node is not None else "reading this node ..."
    room = width - cells(right) - len(name) - 5
    while len(words) > room and " · " in words:
        words = words.rpartition(" · ")[0]
    shown = words[: max(room, 0)]
    space = width - len(name) - 2 - len(shown) - cells(right) - 1
    return (Span(name, "key"), Span(f"  {shown}", "dim"), Span(" " * max(space, 2)), *right)
