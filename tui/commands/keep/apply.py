"""`wavedeck apply`: a kernel on a new branch of the repository that it came from."""

from __future__ import annotations

import os
from pathlib import Path

import click

from harness import Verdict
from sessions.applying.worktree import Repository
from sessions.files import write_whole
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task, split_attempt, split_instance
from sessions.state.state import Confirmation
from suites import baseline_source, load_task
from tui.commands.opening import complete_words, open_kernel
from tui.diagnostics import Complaint
from tui.print.plain import emit
from tui.print.pull_request import commit_message, pull_request


@click.command(name="apply")
@click.argument("words", nargs=-1, required=True, metavar="[SESSION] ATTEMPT", shell_complete=complete_words)
@click.option(
    "--to",
    "repository",
    type=click.Path(path_type=Path),
    required=True,
    metavar="REPO",
    help="The git repository of the original kernel.",
)
@click.option(
    "--file", metavar="PATH", default="", help="The file of the original kernel. [the file with its text]"
)
@click.option(
    "--test",
    metavar="CMD",
    default="",
    help="Shell command that must succeed before and after the change, in the new worktree.",
)
def apply_command(words: tuple[str, ...], *, repository: Path, file: str, test: str) -> None:
    """Commit a correct ATTEMPT, by default of the latest session, to a new branch wavedeck/NAME of REPO.

    Your files and branches stay as they are, and nothing is pushed. The branch is checked out in a worktree of its own; the
    text for a pull request lies beside it.
    """
    if len(words) > 2:
        raise Complaint(f"{words[2]!r} is too much: wavedeck apply [SESSION] ATTEMPT --to REPO")
    kernel = open_kernel(words)
    _check_correct(kernel)
    home = home_from(os.environ)
    home.ensure()
    task = load_task(short_task(kernel.task), registry=home.suites)
    repo = Repository(repository)
    homes = repo.find_files(task, baseline_source(task), file)
    name = _name(kernel)
    place, branch = home.root / "applied" / name, f"wavedeck/{name}"
    message = commit_message(kernel, task)
    commit, paths = repo.apply(
        homes, kernel.source, task, branch=branch, folder=place / "tree", message=message, test=test
    )
    write_whole(place / "PR.md", pull_request(kernel, task, paths, test=test).encode("utf-8", "replace"))
    emit(f"branch        {branch}: commit {commit[:12]} changes {', '.join(paths)}")
    emit(f"worktree      {place / 'tree'}")
    emit(f"pull request  {place / 'PR.md'}")
    emit(f"sign it off   git -C {place / 'tree'} commit --amend -s --no-edit")


def _check_correct(kernel: KeptKernel) -> None:
    attempt = kernel.attempt_state
    if attempt is None or attempt.verdict is not Verdict.CORRECT:
        verdict = attempt.verdict if attempt is not None and attempt.verdict is not None else "not judged"
        raise Complaint(f"{kernel.attempt} is {verdict}; apply a correct attempt")
    if attempt.confirmation is Confirmation.NOT_CONFIRMED:
        raise Complaint(f"{kernel.attempt} failed its exam; apply another attempt")


def _name(kernel: KeptKernel) -> str:
    """Return `softmax-1-3-5f0a`: task, instance, attempt, and the end of the session's name."""
    instance, number = split_attempt(kernel.attempt)
    task, place = split_instance(instance)
    return f"{task.rpartition('/')[2]}-{place}-{number}-{kernel.session.rpartition('-')[2]}"
