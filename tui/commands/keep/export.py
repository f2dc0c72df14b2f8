"""`wavedeck export`: kernels with their evidence, as files for people without Wavedeck."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from engine.predictions.formats import write_results
from engine.predictions.results import session_results
from harness import Verdict
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task
from suites import load_public_suite, load_task, public_suite_names
from tui.commands.files import check_new_folder, write_folder
from tui.commands.opening import complete_words, open_kernel, open_kernels, open_session
from tui.diagnostics import Complaint, printable, say
from tui.facts.vocabulary import words as verdict_words
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
@click.option(
    "--results",
    is_flag=True,
    help="Write the results of SESSION in the files of its public benchmark instead, for the benchmark's own tools.",
)
@click.option("--force", is_flag=True, help="Also write kernels that are not correct.")
def export_command(words: tuple[str, ...], *, patch: bool, results: bool, force: bool) -> None:
    """Write an ATTEMPT, or the accepted and best kernels of SESSION, into a new FOLDER.

    The kernel, its changes from the baseline, the evidence in Markdown and JSON, and a test and a benchmark that need torch
    and Triton, but not Wavedeck. A session gets a folder for each task.
    """
    if not 2 <= len(words) <= 3:
        raise Complaint("name what to export and a folder: wavedeck export softmax#1/2 FOLDER")
    *named, target = words
    folder = Path(target)
    check_new_folder(folder)
    if results:
        for path in _write_results(named[0], folder):
            emit(printable(str(path)))
        return
    if len(named) == 1 and "#" not in named[0]:
        kernels = open_kernels(named[0])
        several = len({kernel.session for kernel in kernels}) > 1
        places = {Path(kernel.session * several, kernel.task): kernel for kernel in kernels}
    else:
        places = {Path(): open_kernel(named)}
    check_correct(places.values(), force=force)
    texts = {
        str(place / name): text
        for place, kernel in places.items()
        for name, text in _files(kernel, patch).items()
    }
    write_folder(folder, texts)
    for name in texts:
        emit(printable(str(folder / name)))


def check_correct(kernels: Iterable[KeptKernel], *, force: bool) -> None:
    """Raise `Complaint` if a kernel is not correct; with `force` only say so."""
    for kernel in kernels:
        verdict = kernel.attempt_state.verdict if kernel.attempt_state is not None else None
        if verdict is Verdict.CORRECT:
            continue
        state = "not judged" if verdict is None else verdict_words(verdict)
        if not force:
            raise Complaint(
                f"{kernel.attempt} is {state}, and only a correct kernel is exported; give --force to write it all the same"
            )
        say(f"{kernel.attempt} is {state}; its evidence says so")


def _files(kernel: KeptKernel, patch: bool) -> dict[str, str]:  # noqa: FBT001  # private
    task = load_task(short_task(kernel.task), registry=home_from(os.environ).suites)
    return export_files(kernel, task) | (patch_file(kernel, task) if patch else {})


def _write_results(session: str, folder: Path) -> list[Path]:
    """Write the best attempt of each instance as a sample of its task. Raises `Complaint` if no benchmark has such files."""
    opened = open_session(session)
    names = {instance.task for instance in opened.state.instances.values()}
    suites = {name.partition("/")[0] for name in names} & set(public_suite_names(registry=opened.home.suites))
    paths = []
    for suite in sorted(suites):
        tasks = {task.id: task for task in load_public_suite(suite, registry=opened.home.suites).tasks}
        results = session_results(opened.state, tasks)
        place = folder / suite if len(suites) > 1 else folder
        paths += write_results(next(iter(tasks.values())).kind, results, place, name=opened.name)
    if not paths:
        raise Complaint(
            f"session {opened.name} has no verdict on a task of a benchmark with files of its own"
        )
    return paths
