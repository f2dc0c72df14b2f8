"""`wavedeck sessions`: what was run and what runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import click

from harness import Verdict
from sessions import Journal, fold
from sessions.catalog import SessionInfo, Standing, delete_session, find_session, journal_of, list_sessions
from sessions.home import home_from
from sessions.names import short_task
from tui.asked import asked, asked_table
from tui.certainty import exam_sentence, exam_word, told_confirmed
from tui.commands.options import json_option, session_argument
from tui.diagnostics import Complaint, say
from tui.method_words import method_words, option_words
from tui.narrate import counted
from tui.next_step import next_command
from tui.plain import UNKNOWN, Column, emit, emit_json, interactive, money, table
from tui.summary import next_line, outcomes, summary
from tui.timed_against import spread_lines, timing_words


@click.group(name="sessions", invoke_without_command=True)
@json_option
@click.pass_context
def sessions_command(ctx: click.Context, *, as_json: bool) -> None:
    """List, show and delete sessions."""
    if ctx.invoked_subcommand is None:
        tell_list(as_json=as_json)


@sessions_command.command("list")
@json_option
def list_command(*, as_json: bool) -> None:
    """Every session, newest first, with where it stands."""
    tell_list(as_json=as_json)


def tell_list(*, as_json: bool) -> None:
    """Every session, as JSON or a table."""
    home = home_from(os.environ)
    known = list_sessions(home)
    if as_json:
        emit_json(known)
    elif known:
        emit(sessions_table(known))
    else:
        say(f"no sessions yet in {home.root}; begin with: wavedeck run")


def sessions_table(known: Sequence[SessionInfo]) -> str:
    """One line a session."""
    columns = [
        Column("session", keep=True),
        Column("state", keep=True),
        Column("solved", right=True),
        Column("confirmed", right=True, if_known=True),
        Column("attempts", right=True),
        Column("best", right=True, if_known=True),
        Column("cost", right=True, if_known=True),
        Column("model"),
        Column("options", if_known=True),
    ]
    return table(columns, [_row(each) for each in known])


def _row(each: SessionInfo) -> tuple[str, ...]:
    best = max(each.speedups.values(), default=None)
    return (
        each.name,
        f"{each.state}",
        f"{len(each.solved)}/{len(each.tasks)}",
        told_confirmed(each),
        str(each.attempts),
        UNKNOWN if best is None else f"{best:.2f}x",
        money(each.cost_usd),
        each.model,
        option_words(each.options) or UNKNOWN,
    )


@sessions_command.command("show")
@session_argument
@json_option
def show_command(session: str, *, as_json: bool) -> None:
    """One session: how it was started, and what it has to show for each task and instance."""
    home = home_from(os.environ)
    name = find_session(home, session)
    info = next((each for each in list_sessions(home) if each.name == name), None)
    if info is None:
        raise Complaint(f"session {name} went away while it was looked at; list them with: wavedeck sessions")
    journal = journal_of(home, name)
    state = fold(journal.events)
    models = asked(state)
    if as_json:
        emit_json(
            {
                "session": info,
                "started": state.started,
                "skipped_events": len(journal.skipped),
                "asked": models,
                "tasks": [
                    {
                        "task": each.task,
                        "attempts": each.attempts,
                        "correct": each.correct,
                        "best": each.best.attempt if each.best else None,
                        "verdict": each.best.verdict if each.best else None,
                        "confirmation": each.best.confirmation if each.correct and each.best else None,
                    }
                    for each in outcomes(state)
                ],
                "attempts": [
                    {
                        "attempt": each.attempt,
                        "origin": each.origin,
                        "base": each.base,
                        "verdict": each.verdict,
                        "exam": each.exam.verdict if each.exam else None,
                        "confirmation": each.confirmation if each.verdict is Verdict.CORRECT else None,
                        "spread": [one.evaluation for one in each.spread],
                        "accepted": each.decision.accepted if each.decision else None,
                        "commit": each.commit,
                    }
                    for each in state.attempts()
                ],
            }
        )
        return
    emit(f"{name}: {info.state}")
    if info.started is not None:
        method = method_words(info.method, info.options)
        emit(
            f"started {datetime.fromtimestamp(info.started, UTC):%Y-%m-%d %H:%M:%S} UTC, {method} with {info.model}"
        )
        if info.series:
            emit(f"a part of {info.series}")
    if state.started is not None and timing_words(state.started):
        emit(timing_words(state.started))
    if journal.skipped:
        say(left_out(journal))
    emit("")
    emit(
        table(
            [
                Column("instance", keep=True),
                Column("attempts by verdict"),
                Column("best", keep=True),
                Column("exam", keep=True, if_known=True),
                Column("ended"),
            ],
            [
                (
                    f"{short_task(instance.task)}#{instance.instance}",
                    " ".join(f"{attempt.verdict or UNKNOWN}" for attempt in instance.attempts) or UNKNOWN,
                    instance.best or UNKNOWN,
                    exam_word(state.attempt(instance.best), instance) or UNKNOWN
                    if instance.best
                    else UNKNOWN,
                    (instance.finished or UNKNOWN).replace("_", " "),
                )
                for instance in state.instances.values()
            ],
        )
    )
    examined = [
        (each, instance) for instance in state.instances.values() for each in instance.attempts if each.exam
    ]
    if examined:
        emit("")
    for each, instance in examined:
        emit(f"{each.attempt}: {exam_sentence(each, instance)}")
    for each in state.attempts():
        for words in spread_lines(each):
            emit(f"{each.attempt} on {words}")
    if models:
        emit("")
        emit(asked_table(models))
    emit("")
    emit(summary(state))
    emit(next_line(next_for(info)))


def next_for(info: SessionInfo) -> str:
    """What a person does with a session in this state."""
    running, finished = info.state is Standing.RUNNING, info.state is Standing.FINISHED
    return next_command(info.name, running=running, finished=finished)


def left_out(journal: Journal) -> str:
    """That a journal holds something this version could not use."""
    return f"left out {counted(len(journal.skipped), 'line')} of its journal that cannot be read"


@sessions_command.command("delete")
@session_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_command(session: str, *, yes: bool) -> None:
    """Delete a session that is not running, with all its attempts. Accepted kernels stay."""
    home = home_from(os.environ)
    name = find_session(home, session)
    if not yes and not interactive(os.environ):
        raise Complaint(f"{name} is deleted for good: there is nobody to ask, so say --yes")
    if not yes and not click.confirm(f"delete {name} and all its attempts?", err=True):
        say(f"{name} was not deleted")
        return
    delete_session(home, name)
    say(f"{name} deleted; accepted kernels stay")
