"""The table of the winners over all sessions."""

from __future__ import annotations

from typing import NamedTuple

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.selection import best_row, grouped
from sessions.names import short_task
from sessions.state.speed import Speed, fastest_first
from tui.facts.report.section import Bars, Section, section_of
from tui.facts.report.winner_sections import CAUTION, EXAM_STYLES, interval_cell, speed_cell
from tui.facts.tables import Cell, Column, Field, Number

from .row_set import RowSet, method_of


class TaskWinner(NamedTuple):
    """The best attempt of a task over all sessions."""

    task: str
    best: AttemptRow
    solved: int
    """Sessions with a correct attempt."""
    sessions: int

    @property
    def speed(self) -> Speed | None:
        """The speedup of the best attempt."""
        return self.best.speed


def task_winners(rows: RowSet) -> list[TaskWinner]:
    """Return the best attempt of each solved task over all sessions, the fastest first; of attempts that tie the earlier."""
    winners = []
    for task, own in grouped(rows.bests, lambda row: row.task).items():
        best = best_row(sorted(own, key=lambda row: row.session))
        if best is not None and best.correct:
            winners.append(TaskWinner(task, best, sum(row.correct for row in own), len(own)))
    return fastest_first(winners, lambda winner: winner.speed)


def winner_section(rows: RowSet) -> Section:
    """Return the table of the winners, and a bar for each."""
    winners = task_winners(rows)
    fields: tuple[Field[TaskWinner], ...] = (
        Field(Column("task", keep=True), lambda winner: short_task(winner.task)),
        Field(Number("speedup", if_known=True), lambda winner: speed_cell(winner.speed)),
        Field(Number("95 %", if_known=True, drop=2), lambda winner: interval_cell(winner.speed)),
        Field(
            Column("exam", 12, 12),
            lambda winner: Cell(str(winner.best.confirmation), EXAM_STYLES[winner.best.confirmation]),
        ),
        Field(
            Number("sessions", drop=1),
            lambda winner: Cell(f"{winner.solved}/{winner.sessions}", value=winner.solved),
        ),
        Field(Column("attempt", keep=True), lambda winner: winner.best.attempt),
        Field(Column("session", keep=True), lambda winner: winner.best.session, "key"),
        Field(Column("method", drop=3), lambda winner: method_of(winner.best, rows)),
        Field(Column("model", drop=4), lambda winner: winner.best.model),
        Field(Column("against", if_known=True, drop=6), lambda winner: winner.best.against, "dim"),
        Field(
            Column("hardware", if_known=True, drop=5),
            lambda winner: (winner.best.provenance or ("",))[0],
            "dim",
        ),
    )
    section = section_of(
        "Winners of all sessions",
        fields,
        winners,
        lambda winner: f"{winner.best.session}|{winner.best.attempt}",
    )
    tasks = len({row.task for row in rows.bests})
    sample = f"n: {len(winners)} of {tasks} tasks are solved. sessions: those that solve the task, of those that tried."
    timed = {(row.against, row.provenance) for row in (winner.best for winner in winners) if row.headline}
    caution = CAUTION if len(timed) > 1 else ""
    sentences = tuple(filter(None, (sample, caution, rows.left_out(rows.rejected))))
    measured = tuple(winner for winner in winners if winner.speed is not None)
    return section.named("winners", sentences, (Bars(measured),) if measured else ())
