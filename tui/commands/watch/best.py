"""`wavedeck best`: the best attempt ever of each task, over all sessions."""

from __future__ import annotations

import os

import click

from harness.wire.results.provenance import Provenance
from sessions.best_ever import BestEver, bests_ever
from sessions.catalog import list_sessions
from sessions.home import home_from
from sessions.names import full_task, short_task
from tui.commands.keep.sessions import say_damaged
from tui.commands.options import complete_tasks, json_option
from tui.diagnostics import Complaint, say
from tui.facts.tables import Column, Field
from tui.facts.vocabulary import moment
from tui.print.plain import emit, emit_json, listing


def provenance(best: BestEver) -> Provenance:
    """Return the hardware and software of an attempt's times; unknown values are empty."""
    return best.measured.provenance or Provenance()


FIELDS: tuple[Field[BestEver], ...] = (
    Field(Column("task", keep=True), lambda best: short_task(best.measured.task)),
    Field(Column("speedup", keep=True), lambda best: str(best.measured.speed)),
    Field(
        Column("cases", right=True),
        lambda best: f"{best.measured.speed.cases}/{best.measured.speed.all_cases}",
    ),
    Field(Column("exact cases", if_known=True, drop=4), lambda best: best.measured.speed.exact_words),
    Field(Column("exam", keep=True), lambda best: "confirmed" if best.measured.confirmed else "not examined"),
    Field(Column("against", if_known=True), lambda best: best.measured.against),
    Field(Column("device"), lambda best: f"{best.measured.product} {provenance(best).partition}".rstrip()),
    Field(Column("driver", if_known=True, drop=2), lambda best: provenance(best).driver),
    Field(Column("triton", if_known=True, drop=2), lambda best: provenance(best).triton),
    Field(Column("torch", if_known=True, drop=3), lambda best: provenance(best).torch),
    Field(Column("judged (UTC)", keep=True, drop=1), lambda best: moment(best.measured.judged)),
    Field(Column("session", keep=True), lambda best: best.session),
    Field(Column("attempt", keep=True), lambda best: best.measured.attempt),
)
"""One line per task, provenance and baseline."""


@click.command(name="best")
@click.argument("task", required=False, shell_complete=complete_tasks)
@json_option
def best_command(task: str | None, *, as_json: bool) -> None:
    """Show the fastest attempt of each task, or of TASK, over all sessions.

    Confirmed attempts come before others; without one, the fastest correct attempt that was measured. Speedups compare
    only on the same device product and partition, with the same driver, torch and Triton, and against the same baseline.
    So a task has a line for each of them. Unlike the tables of `report`, it has kernels of people, tasks with a weak oracle,
    and the times of `rejudge`.
    """
    home = home_from(os.environ)
    infos = list_sessions(home)
    say_damaged(infos)
    bests = bests_ever(home, infos)
    if task is not None:
        measured = {best.measured.task for best in bests}
        bests = [best for best in bests if best.measured.task == full_task(task)]
        if not bests and not as_json:
            names = ", ".join(sorted(map(short_task, measured))) or "none"
            raise Complaint(f"no attempt of {short_task(task)} was measured; measured tasks: {names}")
    if as_json:
        emit_json(bests)
    elif bests:
        emit(listing(FIELDS, bests))
    else:
        say(f"no attempt was measured in {home.root}; device cpu gives no times")
