"""`wavedeck sessions dataset`: rows for training out of sessions, and the winners as importable kernels."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from sessions.home import home_from
from sessions.kept_kernels import KeptKernel, session_kernels
from sessions.metrics.training_rows import Row, conversations, is_right, pairs, transitions
from sessions.state.winners import place
from suites.registry import RESTRICTS_TRAINING, suite_licences
from tui.commands.files import write_document, write_folder
from tui.commands.opening import OpenedSession, open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, printable, say
from tui.facts.vocabulary import counted
from tui.print.export_files import HOW, facts
from tui.print.markdown_text import facts_list
from tui.print.plain import emit_line

WINNERS = "winners"


@click.command("dataset")
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions)
@click.option(
    "--format",
    "form",
    type=click.Choice(("pairs", "transitions", "messages", WINNERS)),
    default="pairs",
    help="What to write. [pairs]",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="File of the rows, which is replaced; a new or empty folder for winners. [standard output]",
)
@click.option(
    "--any-licence", is_flag=True, help="Also rows of tasks with a licence that restricts training."
)
def dataset_command(sessions: tuple[str, ...], *, form: str, out: Path | None, any_licence: bool) -> None:
    """Write data of SESSIONs or studies for training.

    pairs: failed attempts with the next right code of their chain, and right attempts with a faster one made from them.
    transitions: changes between two attempts of an instance that changed the result. messages: prompt and reply of each attempt,
    in the form of chat trainers. winners: the accepted or best kernel of each solved task as a Python module.

    Rows are JSON lines with the licence of the task's suite and the provenance; pairs and transitions have the keys of
    KernelBench-X's corpus.
    """
    opened = open_sessions(sessions)
    licences = suite_licences(home_from(os.environ).suites)
    if form == WINNERS:
        if out is None:
            raise Complaint("--format winners writes a folder; name it with -o FOLDER")
        files = winner_files(_kernels(opened), licences)
        write_folder(out, files)
        say(f"{counted(len(files) - 2, 'kernel')} and README.md are in {out}")
        return
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
        best = {(kernel.session, kernel.attempt) for kernel in one_a_task(_kernels(opened)).best.values()}
        for session in opened:
            yield from conversations(session.state, licences, best)
        return
    for session in opened:
        yield from (pairs if form == "pairs" else transitions)(session.state, licences)


def _kernels(opened: Iterable[OpenedSession]) -> list[KeptKernel]:
    return [kernel for session in opened for kernel in session_kernels(session.name, session.state)]


class Chosen(NamedTuple):
    """The kernels of sessions: one a task, and those that are left out."""

    best: dict[str, KeptKernel]
    """The accepted kernel of each task, else the best by the rank of a session's winners. Different hardware is one rank."""
    worse: list[KeptKernel]
    refused: list[KeptKernel]
    """Not right, or refused by a person or the exam."""


def one_a_task(kernels: Iterable[KeptKernel]) -> Chosen:
    """Return the best right kernel of each task, and the kernels that are left out."""
    chosen = Chosen({}, [], [])
    for kernel in kernels:
        attempt = kernel.attempt_state
        if attempt is None or not is_right(attempt):
            chosen.refused.append(kernel)
            continue
        best = chosen.best.setdefault(kernel.task, kernel)
        if best is not kernel:
            first, second = sorted((best, kernel), key=_worth, reverse=True)
            chosen.best[kernel.task] = first
            chosen.worse.append(second)
    return chosen


def _worth(kernel: KeptKernel) -> tuple[bool, object]:
    attempt = kernel.attempt_state
    assert attempt is not None, "right kernels have an attempt"
    return bool(attempt.accepted), place(attempt)


INIT = '"""Triton kernels that Wavedeck judged correct; README.md has the evidence of each."""\n'
HEAD = (
    "Each module is the code of a candidate, unchanged. It needs torch and Triton, but not Wavedeck. "
    "The licence named here is that of the task's suite, whose instruction and reference the model may have seen. "
    "`wavedeck export` writes the whole evidence of a kernel with a test and a benchmark."
)


def winner_files(kernels: Iterable[KeptKernel], licences: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the folder by file name: a module for each task, `__init__.py` and `README.md`.

    The README names the kernels that are left out. `licences` are SPDX names by suite. Raises `Complaint` if no kernel is left.
    """
    chosen = one_a_task(kernels)
    if not chosen.best:
        raise Complaint("these sessions have no correct kernel that neither a person nor the exam refused")
    modules: dict[str, str] = {}
    sections = []
    for kernel in chosen.best.values():
        state, attempt = kernel.state, kernel.attempt_state
        assert state is not None, "right kernels have a session"
        assert attempt is not None
        name = _module_name(kernel.task, modules)
        modules[f"{name}.py"] = kernel.source
        licence = licences.get(kernel.task.partition("/")[0], "not known")
        lines = [*facts(kernel, state, attempt), ("licence of the task's suite", licence)]
        sections += [f"## {name}.py", facts_list(lines)]
    if chosen.worse or chosen.refused:
        sections.append("## Left out")
    for reason, left_out in (
        ("Another kernel of the task is better", chosen.worse),
        ("Refused by a person or the exam, or not correct", chosen.refused),
    ):
        names = ", ".join(f"{kernel.attempt} of {kernel.session}" for kernel in left_out)
        sections += [f"{reason}: {names}."] if names else []
    readme = "\n\n".join(["# Kernels and their evidence", HEAD, HOW, *sections])
    return modules | {"__init__.py": INIT, "README.md": printable(readme) + "\n"}


def _module_name(task: str, taken: Mapping[str, str]) -> str:
    """Return a module's name for a task: `softmax_kernel`, or `softmax_kernel_2` if it is taken."""
    stem = re.sub(r"\W", "_", task.partition("/")[2], flags=re.ASCII) + "_kernel"
    stem = f"task_{stem}" if stem[:1].isdigit() else stem
    name, number = stem, 1
    while f"{name}.py" in taken:
        number += 1
        name = f"{stem}_{number}"
    return name
