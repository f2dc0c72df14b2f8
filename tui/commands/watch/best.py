"""`wavedeck best`: the best attempt ever of each task, over all sessions."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from sessions.best_ever import BestEver, bests_ever
from sessions.catalog import list_sessions
from sessions.home import home_from
from sessions.names import full_task, short_task
from tui.commands.keep.sessions import say_damaged
from tui.commands.options import complete_tasks, json_option
from tui.diagnostics import Complaint, say
from tui.facts.tables import Column
from tui.facts.vocabulary import UNKNOWN, moment
from tui.print.plain import emit, emit_json, table


@click.command(name="best")
@click.argument("task", required=False, shell_complete=complete_tasks)
@json_option
def best_command(task: str | None, *, as_json: bool) -> None:
    """Show the fastest attempt of each task, or of TASK, over all sessions.

    Confirmed attempts come before others; without one, the fastest correct attempt that was measured. Speedups compare
    only on the same device product and against the same baseline, so a task has a line for each of them.
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
        emit(best_table(bests))
    else:
        say(f"no attempt was measured in {home.root}; device cpu gives no times")


def best_table(bests: Sequence[BestEver]) -> str:
    """Return a table with one line per task, device product and baseline."""
    columns = [
        Column("task", keep=True),
        Column("speedup", keep=True),
        Column("cases", right=True),
        Column("exact cases", if_known=True, drop=4),
        Column("exam", keep=True),
        Column("against", if_known=True),
        Column("device"),
        Column("triton", if_known=True, drop=2),
        Column("torch", if_known=True, drop=3),
        Column("judged (UTC)", keep=True, drop=1),
        Column("session", keep=True),
        Column("attempt", keep=True),
    ]
    return table(columns, list(map(_row, bests)))


def _row(best: BestEver) -> tuple[str, ...]:
    measured = best.measured
    return (
        short_task(measured.task),
        str(measured.speed),
        f"{measured.speed.cases}/{measured.speed.all_cases}",
        measured.speed.exact_words or UNKNOWN,
        "confirmed" if measured.confirmed else "not examined",
        measured.against or UNKNOWN,
        measured.product,
        measured.triton or UNKNOWN,
        measured.torch or UNKNOWN,
        moment(measured.judged),
        best.session,
        measured.attempt,
    )
