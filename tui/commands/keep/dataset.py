"""`wavedeck sessions dataset`: rows for training out of sessions."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from sessions.home import home_from
from sessions.kept_kernels import KeptKernel, session_kernels
from sessions.metrics.training_rows import Row, conversations, is_right, pairs, transitions
from sessions.state.winners import place
from suites.registry import RESTRICTS_TRAINING, suite_licences
from tui.commands.files import write_document
from tui.commands.opening import OpenedSession, open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import say
from tui.facts.vocabulary import counted
from tui.print.plain import emit_line


@click.command("dataset")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(("pairs", "transitions", "messages")),
    default="pairs",
    help="What to write. [pairs]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File of the rows, which is replaced. [standard output]",
)
@click.option(
    "--any-licence", is_flag=True, help="Also rows of tasks with a licence that restricts training."
)
def dataset_command(sessions: tuple[str, ...], *, form: str, out: Path | None, any_licence: bool) -> None:
    """Write data of SESSIONs or studies for training.

    pairs: failed attempts with the next right code of their chain, and right attempts with a faster one made from them.
    transitions: changes between two attempts of an instance that changed the result. messages: prompt and reply of each attempt,
    in the form of chat trainers.

    Rows are JSON lines with the licence of the task's suite and the provenance; pairs and transitions have the keys of
    KernelBench-X's corpus.
    """
    opened = open_sessions(sessions)
    licences = suite_licences(home_from(os.environ).suites)
    restricted: set[str] = set()
    refused = frozenset() if any_licence else RESTRICTS_TRAINING
    rows = _allowed(_rows(opened, form, licences), refused, restricted)
    lines = map(msgspec.json.encode, rows)
    if out is None:
        number = 0
        for number, line in enumerate(lines, start=1):  # noqa: B007  # the number of rows after the loop
            emit_line(line)
        if not number:
            say("0 rows; what makes a row: wavedeck sessions dataset --help")
    else:
        written = [*lines]
        write_document(out, b"".join(line + b"\n" for line in written), "the data")
        say(f"{counted(len(written), 'row')} in {out}")
    if restricted:
        names = ", ".join(sorted(RESTRICTS_TRAINING))
        say(
            f"{counted(len(restricted), 'task')} left out, because the licence of its suite restricts training ({names}); "
            "--any-licence writes its rows"
        )


def _allowed(rows: Iterable[Row], refused: Collection[str], left_out: set[str]) -> Iterator[Row]:
    """Yield the rows without a refused licence; add the tasks of the others to `left_out`."""
    for row in rows:
        if row["task_license"] in refused:
            left_out.add(row.get("task_id") or row["task"])
        else:
            yield row


def _rows(opened: Sequence[OpenedSession], form: str, licences: Mapping[str, str]) -> Iterator[Row]:
    if form == "messages":
        winners = _winners(opened)
        for session in opened:
            yield from conversations(session.state, licences, winners)
        return
    for session in opened:
        yield from (pairs if form == "pairs" else transitions)(session.state, licences)


def _winners(opened: Iterable[OpenedSession]) -> set[tuple[str, str]]:
    """Return session and attempt of the best right kernel of each task: accepted ones first. Different hardware is one rank."""
    best: dict[str, tuple[tuple[bool, object], KeptKernel]] = {}
    for session in opened:
        for kernel in session_kernels(session.name, session.state):
            attempt = kernel.attempt_state
            if attempt is None or not is_right(attempt):
                continue
            worth = (bool(attempt.accepted), place(attempt))
            if kernel.task not in best or worth > best[kernel.task][0]:
                best[kernel.task] = worth, kernel
    return {(kernel.session, kernel.attempt) for _, kernel in best.values()}
