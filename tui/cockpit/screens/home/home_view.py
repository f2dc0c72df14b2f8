"""The list of sessions as rows: what ran, what runs, what waits. Pure: the same list, the same rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from harness.wire.device import is_cpu
from harness.wire.limits import memory_words
from sessions.state.state import known_sum
from tui.cockpit.draw.grid import paragraph, spaced, table_lines
from tui.cockpit.draw.lines import Line, Span, cells, clean, fit, line, plain, wrap_phrases
from tui.facts import vocabulary
from tui.facts.doing import preparing
from tui.facts.node_facts import NodeFacts, node_words
from tui.facts.session_fields import fastest
from tui.facts.settings_words import method_words
from tui.facts.tables import Cell, Column, Number, Row, Table, row
from tui.facts.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from sessions.catalog import SessionInfo
    from tui.cockpit.data.previews import Details

COLUMNS = (
    Column("session", 16, 19),
    Column("task", 8, 12, inner_cut=True),
    Column("model", 10, 28, drop=2, inner_cut=True),
    Number("solved", 6, 7, drop=3),
    Number("confirmed", 9, 9, drop=5, if_known=True),
    Number("attempts", 8, 8, drop=4),
    Column("best, 95 %", most=18, keep=True),
    Number("cost", most=18, drop=6),
    Number("time", most=9, drop=7),
    Column("method", 4, 60, drop=8, inner_cut=True),
    Column("state", most=14, keep=True),
)
NAME = re.compile(r"\d{4}(\d\d)(\d\d)-(\d\d)(\d\d)\d\d-.+-([0-9a-z]{4})(~\d+)?")
"""The name of a session: date, time, method, and letters that make it unique."""
SECTIONS = {"running": "Running", "finished": "Finished"}
"""Titles of the list by state; any other state is `NOT_FINISHED`."""
NOT_FINISHED = "Not finished"
PURPOSE = "Agents write Triton kernels, a strict judge tests them, and you decide."
STARTS = {
    "d": ("the demo", "recorded replies, a live judge; it waits for you once"),
    "e": ("a run on an H200", "faster kernels with times, a cheat caught, a rejection"),
    "f": ("your own kernel", "name its file: tuned without a key, rewritten with one"),
}
"""Keys of Home for a person without a session, each with a name and words."""


def session_row(info: SessionInfo) -> Row:
    """Return one session in one line."""
    first, *further = [*(task.rpartition("/")[2] for task in info.settings.tasks), ""]
    return Row(
        info.name,
        (
            Cell(clean(info.title) or NAME.sub(r"\1-\2 \3:\4 \5", info.name)),
            Cell(clean(first + (f" +{len(further) - 1}" if len(further) > 1 else "")) or UNKNOWN),
            Cell(clean(info.settings.model) or UNKNOWN, "dim"),
            Cell(f"{len(info.solved)}/{len(info.settings.tasks)}" if info.settings.tasks else UNKNOWN),
            Cell(UNKNOWN if info.confirmed is None else str(len(info.confirmed)), "dim"),
            Cell(f"{info.attempts:,}"),
            best_cell(info),
            Cell(cost_words(info), "dim"),
            Cell("-" if info.worked_s is None else vocabulary.clock(info.worked_s), "dim"),
            Cell(clean(method_words(info.settings.method, info.settings.options)) or UNKNOWN, "dim"),
            waits_cell(info),
        ),
    )


def section_of(info: SessionInfo) -> str:
    """Return the title above the session in the list."""
    return SECTIONS.get(info.state.value, NOT_FINISHED)


def can_resume(info: SessionInfo) -> bool:
    """True if an engine can go on with the session, or bring it to the store."""
    return info.state.value in ("stopped", "crashed", "not stored")


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


def preview_lines(
    info: SessionInfo, details: Details | None, *, now: float, width: int, height: int
) -> list[Line]:
    """Return the session under the cursor in at most `height` lines: state, what it prepares, winners, last error, size.

    `details` is `None` before they are read.
    """
    if info.problem:
        return [line("damaged", "bad"), *paragraph(info.problem, width)][:height]
    state, settings = info.state.value, info.settings
    run = (
        method_words(settings.method, settings.options),
        settings.model,
        vocabulary.counted(len(settings.tasks), "task"),
        ", ".join(settings.devices),
        f"review {settings.review}",
    )
    above = [
        *([line(info.title, "bold")] if info.title else []),
        line(info.name, "key"),
        *paragraph(f"{state}, started {vocabulary.moment(info.started)} UTC", width, "dim"),
        *(row for words in preparing(info.preparing, now) for row in paragraph(words, width, "busy")),
        *wrap_phrases([Span(words) for words in run if words], width, Span(" · ", "dim")),
    ]
    below = []
    if info.waiting:
        waiting = vocabulary.counted(len(info.waiting), "attempt")
        below.append(line(f"{waiting} not decided: {', '.join(info.waiting)}", "warn"))
    if details is not None and details.size_bytes:
        if details.last_error:
            below += _cut_paragraph(f"Last error: {details.last_error}", width, 4 if height > ROOMY else 1)
        elif details.last_error is not None:
            below.append(line("No error", "dim"))
        size = memory_words(details.size_bytes)
        tokens = known_sum([info.input_tokens, info.output_tokens])
        parts = (
            vocabulary.counted(info.attempts, "attempt"),
            f"{vocabulary.count(tokens)} tokens" if tokens else "",
            f"{size} on the disk",
        )
        below += wrap_phrases([Span(part, "dim") for part in parts if part], width, Span(", ", "dim"))
    gaps = 2 if height > ROOMY else 0
    room = height - len(above) - len(below) - gaps - 1
    traffic = details.traffic if details is not None else {}
    winners = [row(*_winner(info, task, traffic)) for task in settings.tasks]
    if len(winners) > room:
        winners = winners[: max(room - 1, 0)]
    further = len(settings.tasks) - len(winners)
    is_counted = any(not info.speeds.get(task) and traffic.get(best) for task, best in info.best.items())
    title = "Winners, by bytes moved / needed" if is_counted else "Winners"
    shown = Table(title, WINNERS, tuple(winners)).with_sentences(
        f"and {further} more" if further and winners else "", style="dim"
    )
    blocks = [above, table_lines(shown, width) if winners else [], below]
    return (spaced(blocks) if gaps else [row for block in blocks for row in block])[:height]


ROOMY = 16
"""Lines of a preview with empty lines between its parts."""
WINNERS = (Column("", most=24, keep=True), Column("", keep=True), Column("", 6))


def _cut_paragraph(text: str, width: int, most: int) -> list[Line]:
    """Return a text in at most `most` lines; `…` if that is not all."""
    rows = paragraph(" ".join(text.split()), width, "bad")
    if len(rows) <= most:
        return rows
    last = fit(f"{plain(rows[most - 1])} {plain(rows[most])}", width)
    return [*rows[: most - 1], line(last, "bad")]


def _winner(info: SessionInfo, task: str, traffic: Mapping[str, str]) -> tuple[Cell, Cell, Cell]:
    """Return a task, its speedup, else its traffic, and its best attempt: `#3/7 accepted`."""
    name, best, speed = Cell(task.rpartition("/")[2]), info.best.get(task, ""), info.speeds.get(task)
    if task not in info.solved:
        return name, Cell("not solved", "dim"), Cell(UNKNOWN, "dim")
    accepted = " accepted" if best in info.accepted else ""
    counted = Cell(traffic.get(best) or "correct")
    figure = counted if speed is None else Cell(str(speed), vocabulary.speed_style(speed))
    return name, figure, Cell(f"{'#' + best.rpartition('#')[2] if best else UNKNOWN}{accepted}")


def start_lines(height: int) -> list[Line]:
    """Return what Wavedeck is for, and the ways to start: each on a line if there are so many lines, else all on one."""
    purpose = line(f" {PURPOSE}")
    if height < len(STARTS):
        names = [(Span(f" {key} ", "key"), Span(f"{name}  ", "dim")) for key, (name, _) in STARTS.items()]
        return [purpose, tuple(span for spans in names for span in spans)]
    return [
        purpose,
        *(
            (Span(f" {key}  ", "key"), Span(f"{name:<16}  "), *line(words, "dim"))
            for key, (name, words) in STARTS.items()
        ),
    ]


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
