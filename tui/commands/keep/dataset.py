"""`wavedeck dataset`: pairs and transitions for training, and the winners as importable kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import click
import msgspec

from sessions import SessionState
from sessions.home import home_from
from sessions.kept_kernels import session_kernels
from sessions.metrics.training_rows import TrainingRow, pairs, transitions
from suites.registry import suite_licences
from tui.commands.files import write_document, write_folder
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import say
from tui.facts.vocabulary import counted
from tui.print.plain import emit_line
from tui.print.winner_files import winner_files

sessions_argument = click.argument(
    "sessions", nargs=-1, required=True, metavar="SESSION...", shell_complete=complete_sessions
)
file_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the rows to FILE. An existing file is replaced. [standard output]",
)


@click.group(name="dataset")
def dataset_command() -> None:
    """Write data for training and for other programs, out of sessions or studies.

    Rows are JSON lines with the keys of KernelBench-X's corpus, then the licence of the task's suite and the provenance.
    """


@dataset_command.command("pairs")
@sessions_argument
@file_option
def pairs_command(sessions: tuple[str, ...], *, output: Path | None) -> None:
    """Write failed attempts with the next right code of their chain, and right attempts with a faster one made from them."""
    _write_rows(sessions, pairs, output)


@dataset_command.command("transitions")
@sessions_argument
@file_option
def transitions_command(sessions: tuple[str, ...], *, output: Path | None) -> None:
    """Write the changes from one attempt of an instance to the next that changed its result, to better or worse."""
    _write_rows(sessions, transitions, output)


@dataset_command.command("winners")
@sessions_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    required=True,
    help="New or empty folder for the kernels.",
)
def winners_command(sessions: tuple[str, ...], *, output: Path) -> None:
    """Write the accepted or best kernel of each solved task as a Python module, and a README with the evidence."""
    kernels = [
        kernel for opened in open_sessions(sessions) for kernel in session_kernels(opened.name, opened.state)
    ]
    files = winner_files(kernels, suite_licences(home_from(os.environ).suites))
    write_folder(output, files)
    say(f"{counted(len(files) - 2, 'kernel')} and README.md are in {output}")


def _write_rows(
    sessions: tuple[str, ...],
    rows_of: Callable[[SessionState, Mapping[str, str]], Iterator[TrainingRow]],
    output: Path | None,
) -> None:
    licences = suite_licences(home_from(os.environ).suites)
    rows = (row for opened in open_sessions(sessions) for row in rows_of(opened.state, licences))
    lines = map(msgspec.json.encode, rows)
    if output is None:
        number = 0
        for number, line in enumerate(lines, start=1):  # noqa: B007  # the number of rows after the loop
            emit_line(line)
        if not number:
            say(f"0 rows; what makes a row: {click.get_current_context().command_path} --help")
        return
    written = [*lines]
    write_document(output, b"".join(line + b"\n" for line in written), "the data")
    say(f"{counted(len(written), 'row')} in {output}")
