"""`wavedeck report --best`: the best attempt ever of each task, over all sessions."""

from __future__ import annotations

import os
from collections.abc import Sequence

from harness.wire.results.provenance import Provenance
from sessions.best_ever import BestEver, bests_ever
from sessions.catalog import list_sessions
from sessions.home import home_from
from sessions.names import full_task, short_task
from tui.commands.keep.sessions import say_damaged
from tui.diagnostics import Complaint, say
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import moment
from tui.print.plain import emit, emit_json, listing


def provenance(best: BestEver) -> Provenance:
    """Return the hardware and software of an attempt's times; unknown values are empty."""
    return best.measured.provenance or Provenance()


FIELDS: tuple[Field[BestEver], ...] = (
    Field(Column("task", keep=True), lambda best: short_task(best.measured.task)),
    Field(Column("speedup", keep=True), lambda best: str(best.measured.speed)),
    Field(Number("cases"), lambda best: f"{best.measured.speed.cases}/{best.measured.speed.all_cases}"),
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


def print_bests(tasks: Sequence[str], *, as_json: bool) -> None:
    """Print the fastest attempt of each task, or of these tasks, over all sessions.

    Confirmed attempts come before others; without one, the fastest correct attempt that was measured. Speedups compare
    only on the same device product and partition, with the same driver, torch and Triton, and against the same baseline.
    So a task has a line for each of them.
    """
    home = home_from(os.environ)
    infos = list_sessions(home)
    say_damaged(infos)
    bests = bests_ever(infos)
    measured = {best.measured.task for best in bests}
    for task in tasks:
        if full_task(task) not in measured:
            names = ", ".join(sorted(map(short_task, measured))) or "none"
            raise Complaint(f"no attempt of {short_task(task)} was measured; measured tasks: {names}")
    if tasks:
        bests = [best for best in bests if best.measured.task in map(full_task, tasks)]
    if as_json:
        emit_json(bests)
    elif bests:
        emit(listing(FIELDS, bests))
    else:
        say(f"no attempt was measured in {home.root}; device cpu gives no times")
