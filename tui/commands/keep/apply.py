"""`wavedeck apply`: a kernel on a new branch of the repository that it came from."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import click

from harness import Verdict
from sessions.applying.before_after import Comparison, compare_end_to_end
from sessions.applying.guarding import guarded
from sessions.applying.worktree import Repository
from sessions.files import write_whole
from sessions.home import home_from
from sessions.kept_kernels import KeptKernel
from sessions.names import short_task, split_attempt, split_instance
from sessions.state.state import Confirmation
from suites import baseline_source, load_task
from tui.actions.holding import check_holds, measured_guard
from tui.actions.tuned_config import tuned_change
from tui.commands.opening import complete_words, open_kernel
from tui.diagnostics import Complaint, ExitCode, say
from tui.print.export_files import standalone_or_none
from tui.print.plain import emit
from tui.print.pull_request import commit_message, comparison_words, pull_request


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
    "--config",
    metavar="PATH",
    default="",
    help="Write what `run --method tune --by case` found into this configuration file of vLLM, SGLang or aiter, and leave the "
    "kernel as it is.",
)
@click.option(
    "--test",
    metavar="CMD",
    default="",
    help="Shell command that must succeed before and after the change, in the new worktree.",
)
@click.option(
    "--guard",
    metavar="SIZE",
    default="",
    help="Call the kernel only on the architecture of its times and in the ranges of this size in which it was faster, else the "
    "original.",
)
@click.option(
    "--must-hold",
    metavar="NAMES",
    default="",
    help="Architectures, such as gfx950,sm_90, for which the kernel must compile and be correct in the interpreter, too.",
)
@click.option(
    "--e2e",
    metavar="CMD",
    default="",
    help="Shell command that runs before and after the change, in five pairs. Its numbers count, printed as lines of "
    "key=value; without any, its time.",
)
@click.option(
    "--gate",
    metavar="KEY",
    default="",
    help="Stop if this number of --e2e drops beyond its noise, such as an accuracy: more is better.",
)
def apply_command(  # an option each
    words: tuple[str, ...],
    *,
    repository: Path,
    file: str,
    config: str,
    test: str,
    guard: str,
    must_hold: str,
    e2e: str,
    gate: str,
) -> None:
    """Commit a correct ATTEMPT, by default of the latest session, to a new branch wavedeck/NAME of REPO.

    Your files and branches stay as they are, and nothing is pushed. The branch is checked out in a worktree of its own; the
    text for a pull request lies beside it.
    """
    kernel = open_kernel(words)
    _check_correct(kernel)
    home = home_from(os.environ)
    home.ensure()
    task = load_task(short_task(kernel.task), registry=home.suites)
    repo = Repository(repository)
    if gate and not e2e:
        raise Complaint("--gate names a number that the command of --e2e prints; add --e2e CMD")
    if config and (guard or must_hold or file):
        raise Complaint("--config leaves the kernel as it is; leave --file, --guard and --must-hold out")
    targets = tuple(filter(None, must_hold.split(",")))
    choice = measured_guard(kernel, task, guard) if guard else None
    if config:
        tuned = tuned_change(kernel, task, config, repo)
        files, name = (
            {config: tuned.text.encode()},
            f"{_name(kernel)}-{re.sub(r'[^A-Za-z0-9_.]+', '-', Path(config).stem).strip('-')}",
        )
    else:
        tuned = None
        homes, name = repo.find_files(task, baseline_source(task), file), _name(kernel)
        source = guarded(homes, kernel.source, task.entry_points[0].name, choice) if choice else kernel.source
        files = repo.merged(homes, source, task)
        check_holds(kernel, task, targets)
    place, branch = home.root / "applied" / name, f"wavedeck/{name}"
    message = commit_message(kernel, task, tuned)
    paths = [*files]
    comparisons: list[Comparison] = []

    def compare(trees: tuple[Path, Path]) -> None:
        comparisons.extend(compare_end_to_end(e2e, trees, paths[0], lambda step: say(f"end to end: {step}")))
        if gate:
            _check_gate(comparisons, gate)

    commit = repo.apply(
        files,
        branch=branch,
        folder=place / "tree",
        message=message,
        test=test,
        compare=compare if e2e else None,
    )
    page = pull_request(
        kernel,
        task,
        paths,
        test=test,
        comparisons=comparisons,
        tuned=tuned,
        guard=choice,
        targets=targets,
        template=repo.pull_request_template,
    )
    write_whole(place / "PR.md", page.encode("utf-8", "replace"))
    standalone = {} if config else standalone_or_none(task, kernel.source)
    for name, content in standalone.items():
        (place / "standalone").mkdir(exist_ok=True)
        write_whole(place / "standalone" / name, content.encode("utf-8", "replace"))
    for comparison in comparisons:
        emit(f"{comparison.number:<13} {comparison_words(comparison)}")
    emit(f"branch        {branch}: commit {commit[:12]} changes {', '.join(paths)}")
    emit(f"worktree      {place / 'tree'}")
    emit(f"pull request  {place / 'PR.md'}")
    if standalone:
        emit(f"test, bench   {place / 'standalone'}")
    emit(f"sign it off   git -C {place / 'tree'} commit --amend -s --no-edit")


def _check_correct(kernel: KeptKernel) -> None:
    attempt = kernel.attempt_state
    if attempt is None or attempt.verdict is not Verdict.CORRECT:
        verdict = attempt.verdict if attempt is not None and attempt.verdict is not None else "not judged"
        raise Complaint(f"{kernel.attempt} is {verdict}; apply a correct attempt")
    if attempt.confirmation is Confirmation.NOT_CONFIRMED:
        raise Complaint(f"{kernel.attempt} failed its exam; apply another attempt")


def _check_gate(comparisons: Sequence[Comparison], key: str) -> None:
    """Raise `Complaint` if the number of this key is missing, or if its whole interval is a drop."""
    gated = next((comparison for comparison in comparisons if comparison.number == key), None)
    if gated is None:
        numbers = ", ".join(comparison.number for comparison in comparisons)
        raise Complaint(f"--gate {key}: the command prints no {key}=NUMBER; its numbers are: {numbers}")
    if gated.ratio[2] < 1:
        raise Complaint(
            f"{key} drops beyond its noise: {comparison_words(gated)}; neither branch nor worktree is left",
            code=ExitCode.NO,
        )


def _name(kernel: KeptKernel) -> str:
    """Return `softmax-1-3-5f0a`: task, instance, attempt, and the end of the session's name."""
    instance, number = split_attempt(kernel.attempt)
    task, place = split_instance(instance)
    return f"{task.rpartition('/')[2]}-{place}-{number}-{kernel.session.rpartition('-')[2]}"
