"""`wavedeck sessions`: list, show, title, delete, push, fetch and record sessions."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence

import click
import msgspec

from harness import Verdict
from sessions.catalog import SessionInfo, Standing, delete_session, find_sessions, list_sessions, session_info
from sessions.errors import SessionBusy
from sessions.events import SessionTitled
from sessions.home import home_from
from sessions.state.state import AttemptState, CallState, InstanceState, SessionState, known_sum
from sessions.store.sharing import SharedSessions, fetch_sessions, push_sessions
from tui.commands.opening import open_session
from tui.commands.options import complete_sessions, json_option, session_argument, yes_option
from tui.diagnostics import Complaint, one_line, say
from tui.facts.endings import ended_word, ending_cause
from tui.facts.evaluation.certainty import confirmed_words, exam_sentence, exam_word
from tui.facts.evaluation.spread import spread_lines
from tui.facts.filters import parse
from tui.facts.session_fields import SESSION_FIELDS, best_words, session_fields
from tui.facts.settings_words import method_words, option_words, timing_words
from tui.facts.spending import spending_of
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, counted, duration, grouped, moment, money, next_command
from tui.print.plain import emit, emit_json, interactive, listing
from tui.print.summary import next_line, outcomes, summary

from .dataset import dataset_command
from .record import record_command

QUIET_S = 1.0
"""Seconds before the first line of progress, and between two lines."""


class GitProgress:
    """Prints git's progress on standard error, at most one line a second; nothing for what is done at once."""

    def __init__(self, action: str) -> None:
        self._action = action
        self._shown = time.monotonic()
        self._hint = "; Ctrl-C stops it, and the same command goes on"

    def __call__(self, line: str) -> None:
        """Print the line if the last one is old enough."""
        now = time.monotonic()
        if now - self._shown >= QUIET_S:
            say(f"{self._action}: {line}{self._hint}")
            self._shown, self._hint = now, ""


@click.command("push")
@click.argument("remote")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...", shell_complete=complete_sessions)
def push_command(remote: str, sessions: tuple[str, ...]) -> None:
    """Push SESSIONs, by default all, to the git repository REMOTE.

    REMOTE is a path or URL. Of a running session, the part in the store is pushed. A branch that REMOTE has with other
    commits is refused.
    """
    home = home_from(os.environ)
    names = [name for session in sessions for name in find_sessions(home, session)]
    shared = push_sessions(home, remote, names, on_progress=GitProgress(f"push to {remote}"))
    say(result_words("pushed", shared, f"{remote} has"))


@click.command("fetch")
@click.argument("remote")
@click.argument("sessions", nargs=-1, metavar="[SESSION]...")
def fetch_command(remote: str, sessions: tuple[str, ...]) -> None:
    """Fetch SESSIONs, by default all, from the git repository REMOTE.

    REMOTE is a path or URL. A branch that the store has with other commits is refused. Fetched sessions are listed,
    replayed and reported.
    """
    home = home_from(os.environ)
    shared = fetch_sessions(home, remote, sessions, on_progress=GitProgress(f"fetch from {remote}"))
    say(result_words("fetched", shared, "the store has"))


def result_words(verb: str, shared: SharedSessions, owner: str) -> str:
    """Return `pushed 2 sessions: A, B; node:store has 3 sessions already`."""
    parts = [
        f"{verb} {counted(len(shared.sessions), 'session')}: {', '.join(shared.sessions)}"
        if shared.sessions
        else f"{verb} nothing",
        f"{owner} {counted(len(shared.unchanged), 'session')} already" if shared.unchanged else "",
    ]
    return "; ".join(filter(None, parts))


@click.group(name="sessions", invoke_without_command=True)
@json_option
@click.pass_context
def sessions_command(ctx: click.Context, *, as_json: bool) -> None:
    """List, show, title, push, fetch, delete and record sessions, and write their data."""
    if ctx.invoked_subcommand is None:
        print_list(as_json=as_json)


for command in (push_command, fetch_command, record_command, dataset_command):
    sessions_command.add_command(command)


@sessions_command.command("list")
@click.option(
    "--filter",
    "words",
    default="",
    metavar="TEXT",
    help="Only sessions that match all words: softmax, task:softmax, state:running, speedup>1.2, -model:claude.",
)
@json_option
def list_command(*, words: str, as_json: bool) -> None:
    """List every session with its state, newest first.

    A word of --filter is text that any field contains, or FIELD:TEXT, or FIELD with > >= < <= = and a number. A leading
    - negates. Fields: name, title, state, method, model, task, solved, confirmed, attempts, speedup, cost, tokens, waiting.
    """
    print_list(words, as_json=as_json)


def print_list(words: str = "", *, as_json: bool) -> None:
    """Print every session that the filter's words match, as JSON or a table."""
    home = home_from(os.environ)
    wanted = parse(words, SESSION_FIELDS)
    infos = [info for info in list_sessions(home) if wanted.matches(session_fields(info))]
    say_damaged(infos)
    if as_json:
        emit_json([info.document() for info in infos])
    elif infos:
        emit(sessions_table(infos))
    elif wanted.terms:
        say(f"no session matches {words!r}; list all with: wavedeck sessions")
    else:
        say(f"no sessions yet in {home.root}; begin with: wavedeck run")


def say_damaged(infos: Sequence[SessionInfo]) -> None:
    """Print what each damaged session lost, and what to do, on standard error."""
    for info in infos:
        if info.problem:
            say(f"{info.name} is damaged: {info.problem}")


FIELDS: tuple[Field[SessionInfo], ...] = (
    Field(Column("session", keep=True), lambda info: info.name),
    Field(Column("title", if_known=True), lambda info: info.title),
    Field(Column("state", keep=True), lambda info: f"{info.state}"),
    Field(Number("solved"), lambda info: f"{len(info.solved)}/{len(info.settings.tasks)}"),
    Field(
        Number("confirmed", if_known=True, drop=2), lambda info: confirmed_words(info.solved, info.confirmed)
    ),
    Field(Number("attempts"), lambda info: str(info.attempts)),
    Field(Column("best", keep=True, if_known=True), best_words),
    Field(Number("cost", if_known=True), lambda info: money(info.cost_usd)),
    Field(Column("model", drop=1), lambda info: info.settings.model),
    Field(Column("options", if_known=True, drop=3), lambda info: option_words(info.settings.options)),
)


def sessions_table(infos: Sequence[SessionInfo]) -> str:
    """Return a table with one line per session."""
    return listing(FIELDS, infos)


INSTANCES: tuple[Field[InstanceState], ...] = (
    Field(Column("instance", keep=True), lambda instance: instance.key),
    Field(
        Column("attempts by verdict"),
        lambda instance: " ".join(f"{attempt.verdict or UNKNOWN}" for attempt in instance.attempts),
    ),
    Field(Column("best", keep=True), lambda instance: instance.best or ""),
    Field(
        Column("exam", keep=True, if_known=True), lambda instance: exam_word(instance.best_attempt, instance)
    ),
    Field(Number("tokens", drop=3), lambda instance: grouped(spending_of(instance.attempts).tokens)),
    Field(
        Number("cost", if_known=True, drop=2), lambda instance: money(spending_of(instance.attempts).cost_usd)
    ),
    Field(
        Number("on devices", if_known=True, drop=1),
        lambda instance: duration(spending_of(instance.attempts).device_s or None),
    ),
    Field(Column("ended"), lambda instance: ended_word(instance.finished or "")),
)


@sessions_command.command("show")
@session_argument
@json_option
def show_command(session: str | None, *, as_json: bool) -> None:
    """Show the start and the results of a session.

    A study shows its sessions, `wavedeck study NAME` its cells.
    """
    home = home_from(os.environ)
    names = find_sessions(home, session) if session else []
    if len(names) > 1:
        infos = [info for info in reversed(list_sessions(home)) if info.name in names]
        if as_json:
            emit_json([info.document() for info in infos])
        else:
            emit(f"{sessions_table(infos)}\n\n{next_line(f'wavedeck report {session}')}")
        return
    opened = open_session(session)
    name = opened.name
    info = session_info(opened.home, name)
    if info is None:
        raise Complaint(f"session {name} was deleted just now; list sessions with: wavedeck sessions")
    state = opened.results
    usages = model_usage(state)
    if as_json:
        emit_json(
            {
                "session": info.document(),
                "started": state.started,
                "skipped_events": state.skipped_events,
                "asked": usages,
                "tasks": [
                    {
                        "task": outcome.task,
                        "attempts": outcome.attempts,
                        "correct": outcome.correct,
                        "best": outcome.best.attempt if outcome.best else None,
                        "verdict": outcome.best.verdict if outcome.best else None,
                        "confirmation": outcome.best.confirmation
                        if outcome.correct and outcome.best
                        else None,
                    }
                    for outcome in outcomes(state)
                ],
                "attempts": list(map(attempt_row, state.attempts())),
            }
        )
        return
    if state.skipped_events:
        say(skipped_words(state.skipped_events))
    instances = state.instances.values()
    blocks = (
        "\n".join(head_lines(info, state)),
        listing(INSTANCES, instances),
        "\n".join(
            f"{instance.key}: {words}"
            for instance in instances
            if (words := one_line(ending_cause(instance)))
        ),
        "\n".join(line for instance in instances for line in measured_lines(instance)),
        listing(USAGE, usages) if usages else "",
        f"{summary(state)}\n{next_line(next_for(info))}",
    )
    emit("\n\n".join(filter(None, blocks)))


def head_lines(info: SessionInfo, state: SessionState) -> Iterator[str]:
    """Yield the state of a session, and how it was started."""
    yield f"{info.name}: {info.state}{f', {info.title}' if info.title else ''}"
    if info.started is not None:
        method = method_words(info.settings.method, info.settings.options)
        yield f"started {moment(info.started)} UTC, {method} with {info.settings.model}"
        if info.settings.series:
            yield f"part of {info.settings.series}"
    if state.started is not None and (words := timing_words(state.started)):
        yield words


def measured_lines(instance: InstanceState) -> Iterator[str]:
    """Yield the exams of an instance's attempts, and their speedups on each GPU."""
    for attempt in instance.attempts:
        if attempt.exam:
            yield f"{attempt.attempt}: {exam_sentence(attempt, instance)}"
        yield from (f"{attempt.attempt} on {words}" for words in spread_lines(attempt))


def attempt_row(attempt: AttemptState) -> dict[str, object]:
    """Return the facts of an attempt, for JSON."""
    return {
        "attempt": attempt.attempt,
        "origin": attempt.origin,
        "base": attempt.base,
        "verdict": attempt.verdict,
        "exam": attempt.exam.verdict if attempt.exam else None,
        "confirmation": attempt.confirmation if attempt.verdict is Verdict.CORRECT else None,
        "spread": [measurement.evaluation for measurement in attempt.spread],
        "accepted": attempt.decision.accepted if attempt.decision else None,
        "usage": attempt.usage,
        "cost_usd": attempt.cost_usd,
        "device_s": attempt.device_s,
        "commit": attempt.commit,
    }


def next_for(info: SessionInfo) -> str:
    """Return the next command for a session in this state."""
    if info.state is Standing.DAMAGED:
        return "wavedeck doctor --repair"
    running, finished = info.state is Standing.RUNNING, info.state is Standing.FINISHED
    return next_command(info.name, running=running, finished=finished)


def skipped_words(lines: int) -> str:
    """Return the message about journal lines that this version cannot read."""
    return f"skipped {counted(lines, 'line')} of the journal that cannot be read"


@sessions_command.command("title")
@click.argument("session", shell_complete=complete_sessions)
@click.argument("text")
def title_command(session: str, text: str) -> None:
    """Give a session the title TEXT. At most 80 characters; an empty TEXT removes the title."""
    from tui.actions.send import give  # loads the methods, which a list does not need

    home, name = open_session(session)
    asyncio.run(give(home, name, SessionTitled(title=text)))
    say(f"{name} has the title {text.strip()}" if text.strip() else f"{name} has no title now")


@sessions_command.command("delete")
@click.argument("session", shell_complete=complete_sessions)
@yes_option
def delete_command(session: str, *, yes: bool) -> None:
    """Delete a session, or all sessions of a study. One that runs is refused; accepted kernels stay."""
    home, names = home_from(os.environ), find_sessions(home_from(os.environ), session)
    subject = names[0] if len(names) == 1 else f"{counted(len(names), 'session')} of {session}"
    if not yes and not interactive(os.environ):
        raise Complaint(
            f"deleting {subject} is final, and there is no terminal to ask for confirmation: add --yes"
        )
    if not yes and not click.confirm(f"delete {subject} with all attempts?", err=True):
        say(f"{subject}: not deleted")
        return
    for name in names:
        if home.files(name).running:  # before the first one is gone
            raise SessionBusy(name)
    for name in names:
        delete_session(home, name)
    say(f"{subject} deleted; accepted kernels stay")


class ModelUsage(msgspec.Struct, frozen=True):
    """Calls of one model in one role. Counts cover finished calls only."""

    role: str
    model: str
    calls: int
    """Finished calls."""
    failed: int
    input_tokens: int | None
    """`None` if no call says how many it read; so for the other counts."""
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    """Sum over the calls with a known price; `None` if no price is known."""
    unpriced_calls: int
    own_temperature: bool
    """True if a call set no temperature because the model refuses one."""
    served: tuple[str, ...]
    """The ids that the server gave for the model."""


def model_usage(state: SessionState) -> list[ModelUsage]:
    """Return one entry for each role and model, in the order of their first calls."""
    calls: dict[tuple[str, str], list[CallState]] = {}
    for attempt in state.attempts():
        for call in attempt.calls:
            calls.setdefault((call.role.value, call.model), []).append(call)
    return [_sum_calls(role, model, group) for (role, model), group in calls.items()]


def _sum_calls(role: str, model: str, calls: Sequence[CallState]) -> ModelUsage:
    finished = [call for call in calls if call.finished]
    costs = [call.cost_usd for call in finished if call.cost_usd is not None]
    return ModelUsage(
        role=role,
        model=model,
        calls=len(finished),
        failed=sum(bool(call.failed) for call in calls),
        input_tokens=known_sum([call.usage.input_tokens for call in finished]),
        cached_tokens=known_sum([call.usage.cached_tokens for call in finished]),
        cache_write_tokens=known_sum([call.usage.cache_write_tokens for call in finished]),
        output_tokens=known_sum([call.usage.output_tokens for call in finished]),
        cost_usd=sum(costs) if costs else None,
        unpriced_calls=sum(call.cost_usd is None and not call.is_of_agent for call in finished),
        own_temperature=any(call.own_temperature for call in finished),
        served=tuple(sorted({call.served.model for call in finished if call.served} - {""})),
    )


USAGE: tuple[Field[ModelUsage], ...] = (
    Field(Column("role", keep=True), lambda usage: usage.role),
    Field(Column("model", keep=True), lambda usage: usage.model),
    Field(Column("served as", if_known=True, drop=3), lambda usage: ", ".join(usage.served)),
    Field(Number("calls"), lambda usage: str(usage.calls)),
    Field(Number("tokens in"), lambda usage: grouped(usage.input_tokens)),
    Field(Number("cached", if_known=True, drop=1), lambda usage: grouped(usage.cached_tokens)),
    Field(Number("out"), lambda usage: grouped(usage.output_tokens)),
    Field(Number("cost", if_known=True), lambda usage: _cost(usage)),
    Field(
        Column("temperature", if_known=True, drop=2),
        lambda usage: "the model's own" if usage.own_temperature else "",
    ),
)


def _cost(usage: ModelUsage) -> str:
    if usage.cost_usd is None:
        return UNKNOWN
    return money(usage.cost_usd) + (f" + {usage.unpriced_calls} unpriced" if usage.unpriced_calls else "")
