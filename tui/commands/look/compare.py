"""`wavedeck compare`: sessions, methods or models at equal budget, and whether their difference is proven; or two kernels."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.attempts import model_name, variant_of
from sessions.metrics.equal_budget import EqualCost
from sessions.metrics.intervals import scipy_stats
from sessions.metrics.selection import grouped
from tui.commands.opening import open_sessions
from tui.commands.options import complete_sessions, setting_options
from tui.diagnostics import Complaint, ExitCode
from tui.facts.report.comparison import (
    compare_each,
    compare_sides,
    comparison_facts,
    comparison_sections,
    each_pair_section,
)
from tui.facts.report.document import Document
from tui.print.plain import emit, emit_json
from tui.print.report import PAGES

BY: dict[str, Callable[[AttemptRow], str]] = {
    "method": variant_of,
    "model": model_name,
}
"""Values by which `--by` divides the attempts into sides."""


@click.command(name="compare")
@click.argument("words", nargs=-1, required=True, metavar="A [B]", shell_complete=complete_sessions)
@click.option(
    "--by",
    type=click.Choice([*BY]),
    help="Compare the methods or the models of the sessions with each other.",
)
@click.option(
    "--at",
    "budget",
    type=click.Choice([budget.value for budget in EqualCost]),
    default=EqualCost.ATTEMPTS.value,
    help="What is equal on both sides. [attempts]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("table", "md", "json")),
    default="table",
    help="Format of the page. [table]",
)
@click.option("--task", help="Two kernel files: the task that they solve. [a task of the file]")
@setting_options("devices")
@click.pass_context
def compare_command(
    ctx: click.Context,
    words: tuple[str, ...],
    *,
    by: str | None,
    budget: str,
    form: str,
    task: str | None,
    devices: str | None,
) -> ExitCode:
    """Compare two sessions or studies, A and B, task by task at equal budget.

    The answer is whether a difference is proven. With --by, the sessions are divided by method or model, and each two sides
    are compared. Instances are paired by task, and by the methods, models and seeds that both sides have. Solved tasks are
    compared by McNemar's exact test, speedups that the same hardware and software timed by a randomization test of their
    ratios. Each p is corrected for the number of comparisons.

    `wavedeck compare A.py B.py --task TASK` judges two kernels; on a GPU, B is timed against A.
    """
    if len(words) == 2 and all(word.endswith(".py") for word in words):
        return compare_kernels(ctx, words, task=task, devices=devices, as_json=form == "json")
    if task or devices:
        raise Complaint(
            "--task and --devices are for two kernel files: wavedeck compare A.py B.py --task TASK"
        )
    if by is None and len(words) != 2:
        raise Complaint("name two sessions or studies to compare, or one with --by method or --by model")
    scipy_stats()  # says what is missing before sessions are read
    sides = sides_by(words, by) if by else two_sides(words)
    if len(sides) > 2:
        pairs = compare_each(sides, EqualCost(budget))
        if form == "json":
            figures = [{"sides": pair.names, **msgspec.structs.asdict(pair.comparison)} for pair in pairs]
            emit_json({"schema": 1, "pairs": figures})
        else:
            emit(PAGES[form](Document(f"{by}s compared".capitalize(), {}, (each_pair_section(pairs),))))
        return ExitCode.DONE
    first, second = sides.values()
    compared = compare_sides(first, second, EqualCost(budget))
    if form == "json":
        emit_json({"schema": 1, "sides": compared.sides} | msgspec.structs.asdict(compared.comparison))
    else:
        sections = tuple(comparison_sections(compared))
        emit(PAGES[form](Document("A and B compared", comparison_facts(compared), sections)))
    return ExitCode.DONE


def compare_kernels(
    ctx: click.Context, files: Sequence[str], *, task: str | None, devices: str | None, as_json: bool
) -> ExitCode:
    """Judge both kernels, the second timed against the first; return the first exit code that is not `DONE`."""
    if task is None:
        raise Complaint(f"name the task that both solve: wavedeck compare {files[0]} {files[1]} --task TASK")
    if missing := [file for file in files if not Path(file).is_file()]:  # before the first takes a minute
        raise Complaint(f"there is no file {missing[0]}; give the path of one Python module")
    seed = str(secrets.randbelow(1 << 31))  # the same inputs for both
    shared = {"task": task, "devices": devices, "seed": seed, "as_json": as_json}
    root: Any = ctx.find_root().command
    codes: list[ExitCode] = [
        ctx.invoke(root.get_command(ctx, "eval"), file=file, **against, **shared)
        for file, against in ((files[0], {}), (files[1], {"against": files[0]}))
    ]
    return next((code for code in codes if code is not ExitCode.DONE), ExitCode.DONE)


def two_sides(words: Sequence[str]) -> dict[str, list[AttemptRow]]:
    """Return the rows of two sessions or studies; `Complaint` if they share a session or one has no judged attempt."""
    opened = {word: open_sessions([word]) for word in words}
    names = [{session.name for session in sessions} for sessions in opened.values()]
    if len(names) < 2 or names[0] & names[1]:
        raise Complaint(f"A and B have the same session, {min(names[0] & names[-1])}; name two")
    sides = {word: [row for session in sessions for row in session.rows] for word, sessions in opened.items()}
    for word, rows in sides.items():
        if not rows:
            raise Complaint(f"no attempt of {word} was judged yet, so there is nothing to compare")
    return sides


def sides_by(words: Sequence[str], by: str) -> dict[str, list[AttemptRow]]:
    """Return the rows of sessions or studies by method or model; `Complaint` if they have one value."""
    rows = [row for session in open_sessions(words) for row in session.rows]
    sides = grouped(rows, BY[by])
    if len(sides) < 2:
        raise Complaint(
            f"only one {by} has judged attempts ({', '.join(sides) or 'none'}), so nothing is compared"
        )
    return sides
