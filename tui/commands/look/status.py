"""`wavedeck status`: the sessions that run now, as a table, one line or JSON. Without SESSION it reads no git, so it is fast."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import click

from sessions.home import home_from
from sessions.listing.info import SessionInfo, running_infos
from sessions.names import short_task
from tui.commands.options import json_option, session_argument
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.doing import preparing
from tui.facts.session_fields import best_words, fastest
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import money, putting_away
from tui.print.plain import emit, emit_json, listing

FIELDS: tuple[Field[SessionInfo], ...] = (
    Field(Column("session", keep=True), lambda info: info.name),
    Field(Column("title", if_known=True, drop=1), lambda info: info.title),
    Field(Column("stage", if_known=True), lambda info: stage_words(info)),
    Field(Number("solved"), lambda info: f"{len(info.solved)}/{len(info.settings.tasks)}"),
    Field(Number("attempts"), lambda info: f"{info.attempts:,}"),
    Field(Column("best", keep=True, if_known=True), best_words),
    Field(Number("cost", if_known=True, drop=2), lambda info: money(info.cost_usd)),
    Field(Column("waits for you", if_known=True), lambda info: ", ".join(info.waiting)),
)


@click.command(name="status")
@session_argument
@click.option(
    "--short",
    is_flag=True,
    help="One line for tmux, nothing if no session runs: `set -g status-right '#(wavedeck status --short)'`.",
)
@click.option(
    "--wait",
    "goal",
    type=click.Choice(["review", "end"]),
    help="Return when an attempt waits for a decision (review), or when no engine runs the session (end).",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="S", help="With --wait: most seconds. [no limit]"
)
@json_option
def status_command(
    session: str | None, *, short: bool, goal: str | None, timeout: float | None, as_json: bool
) -> ExitCode:
    """Show the sessions that run now, or those of SESSION: solved tasks, attempts, best speedup, and what waits for you.

    --wait review prints the attempts that wait. Exit code of --wait: 0 if it happened; 1 if SESSION ended without it, or
    after --timeout; 3 if its engine is gone.
    """
    if short + as_json + (goal is not None) > 1:
        raise Complaint("--short, --json and --wait exclude each other; give one of them")
    if goal is not None:
        from .waiting import wait_for  # folds journals, which the other forms do without

        return wait_for(session, goal, timeout)
    if timeout is not None:
        raise Complaint("--timeout needs --wait review or --wait end")
    home = home_from(os.environ)
    names = None
    if session:
        from sessions.catalog import find_sessions  # reads git, which the other forms do without

        names = find_sessions(home, session)
    infos = [info for info in running_infos(home) if names is None or info.name in names]
    if as_json:
        emit_json([info.document() for info in infos])
    elif short:
        if infos:
            emit(short_line(infos))
    elif infos:
        emit(listing(FIELDS, infos))
    else:
        say(not_running(session, names or ()))
    return ExitCode.DONE


def short_line(infos: Sequence[SessionInfo]) -> str:
    """Return `wavedeck 2 running  12/20 solved  best 1.84x softmax  ! 2`; parts that are not known are left out."""
    solved = sum(len(info.solved) for info in infos)
    tasks = sum(len(info.settings.tasks) for info in infos)
    waiting = sum(len(info.waiting) for info in infos)
    task, best = fastest(infos)
    parts = [
        f"wavedeck {len(infos)} running",
        f"{solved}/{tasks} solved",
        f"best {best.figure} {short_task(task)}" if best is not None else "",
        f"! {waiting}" if waiting else "",
    ]
    return "  ".join(filter(None, parts))


def stage_words(info: SessionInfo) -> str:
    """Return the work of its engine before and after all attempts: it prepares the session, or puts it away."""
    now = time.time()
    if info.putting_away_since is not None:
        return putting_away(info.putting_away_since, now)
    return "; ".join(preparing(info.preparing, now))


def not_running(wanted: str | None, names: Sequence[str]) -> str:
    """Return that nothing runs, or that this session or study does not run, with the next command."""
    if wanted is None:
        return "no session runs; start one with: wavedeck run"
    if len(names) > 1:
        return f"no session of {wanted} runs; list them with: wavedeck study {wanted}"
    return f"{names[0]} does not run; see it with: wavedeck sessions show {names[0]}"
