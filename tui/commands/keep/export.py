"""`wavedeck export`: kernels with their evidence, as files for people without Wavedeck."""

from __future__ import annotations

import os
from pathlib import Path

import click

from sessions.home import home_from
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task
from suites import load_task
from tui.commands.files import write_folder
from tui.commands.opening import complete_words, open_kernel, open_kernels
from tui.diagnostics import Complaint, printable
from tui.print.export_files import export_files, patch_file
from tui.print.plain import emit


@click.command(name="export")
@click.argument(
    "words", nargs=-1, required=True, metavar="[SESSION] [ATTEMPT] FOLDER", shell_complete=complete_words
)
@click.option(
    "--patch",
    is_flag=True,
    help="Also write a diff of the original file for `git apply`, if the task names the file.",
)
def export_command(words: tuple[str, ...], *, patch: bool) -> None:
    """Write an ATTEMPT, by default of the latest session, or the accepted and best kernels of SESSION, into a new FOLDER.

    The kernel, its changes from the baseline, the evidence in Markdown and JSON, a test and a benchmark. Test and benchmark
    need torch and Triton, but not Wavedeck. A session gets a folder for each task.
    """
    if not 2 <= len(words) <= 3:
        raise Complaint("name what to export and a folder: wavedeck export softmax#1/2 FOLDER")
    *named, target = words
    folder = Path(target)
    if len(named) == 1 and "#" not in named[0]:
        places = {Path(kernel.task): kernel for kernel in open_kernels(named[0])}
    else:
        places = {Path(): open_kernel(named)}
    texts = {
        str(place / name): text
        for place, kernel in places.items()
        for name, text in _files(kernel, patch).items()
    }
    write_folder(folder, texts)
    for name in texts:
        emit(printable(str(folder / name)))


def _files(kernel: KeptKernel, patch: bool) -> dict[str, str]:  # noqa: FBT001  # private
    task = load_task(short_task(kernel.task), registry=home_from(os.environ).suites)
    return export_files(kernel, task) | (patch_file(kernel, task) if patch else {})
