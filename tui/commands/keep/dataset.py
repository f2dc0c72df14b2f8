"""`wavedeck dataset`: pairs and transitions for training, and the winners as importable kernels."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import click
import msgspec

from sessions import SessionState
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel, session_kernels
from sessions.metrics.training_rows import TrainingRow, is_right, pairs, transitions
from suites.registry import suite_licences
from tui.commands.files import write_document, write_folder
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions
from tui.diagnostics import Complaint, printable, say
from tui.facts.vocabulary import counted
from tui.print.export_files import HOW, facts
from tui.print.markdown_text import facts_list
from tui.print.plain import emit_line

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


INIT = '"""Triton kernels that Wavedeck judged correct; README.md has the evidence of each."""\n'
HEAD = (
    "Each module is the code of a candidate, unchanged. It needs torch and Triton, but not Wavedeck. "
    "The licence named here is that of the task's suite, whose instruction and reference the model may have seen. "
    "`wavedeck export` writes the whole evidence of a kernel with a test and a benchmark."
)


def winner_files(kernels: Iterable[KeptKernel], licences: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the folder by file name: a module for each kernel, `__init__.py` and `README.md`.

    Kernels that a person or the exam refused are left out, and the README says so. `licences` are SPDX names by suite. Raises
    `Complaint` if no kernel is left.
    """
    modules: dict[str, str] = {}
    sections, refused = [], []
    for kernel in kernels:
        state, attempt = kernel.state, kernel.attempt_state
        if state is None or attempt is None or not is_right(attempt):
            refused.append(f"{kernel.attempt} of {kernel.session}")
            continue
        name = _module_name(kernel.task, modules)
        modules[f"{name}.py"] = kernel.source
        licence = licences.get(kernel.task.partition("/")[0], "not known")
        lines = [*facts(kernel, state, attempt), ("licence of the task's suite", licence)]
        sections += [f"## {name}.py", facts_list(lines)]
    if not modules:
        raise Complaint("these sessions have no correct kernel that neither a person nor the exam refused")
    if refused:
        sections += ["## Left out", f"Refused by a person or the exam, or not correct: {', '.join(refused)}."]
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
