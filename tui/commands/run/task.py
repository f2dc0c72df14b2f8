"""`wavedeck task`: make a task of a kernel file, show a task, check tasks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from suites import (
    BadTask,
    Task,
    check_suite,
    check_task,
    find_task,
    load_suite,
    load_task,
    public_suite_names,
    suite_names,
)
from suites.folder import TASK_FILE
from tui.commands.options import (
    OwnOptions,
    complete_files,
    complete_tasks,
    complete_tasks_and_files,
    json_option,
    judge_python,
    own_options,
    python_option,
    setting_options,
)
from tui.diagnostics import Complaint, ExitCode
from tui.facts.evaluation.task_cases import cases_table
from tui.facts.tables import Column
from tui.print.plain import emit, emit_json, listing, table, tables_text, wrapped

from .public_suites import show_public
from .suites import entry, registry

if TYPE_CHECKING:
    from harness.processes.starting.judge_python import JudgePython


@click.group(name="task")
def task_command() -> None:
    """Make a task of a kernel file, show a task, check tasks."""


@task_command.command("new")
@click.argument("file", metavar="FILE[:FUNCTION]", shell_complete=complete_files)
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@own_options
@click.option(
    "--from",
    "calls",
    metavar="CALLS",
    type=click.Path(path_type=Path),
    help="Take the inputs, and their weights, from a file of `wavedeck capture`.",
)
@setting_options("targets")
@python_option
@json_option
def new_command(
    file: str,
    folder: Path | None,
    *,
    own: OwnOptions,
    targets: str | None,
    python: str,
    as_json: bool,
) -> ExitCode:
    """Write a task for the kernel in FILE, and check it.

    DIR is by default the function's name. --shapes or --from gives the inputs, a PyTorch function in the file (or
    --reference) what is right. The folder is an ordinary task: change what you want, and check it again with
    `wavedeck task check DIR`.
    """
    from tui.commands.own import new_task
    from tui.config import load

    settings = load({"targets": targets}, environ=os.environ, folder=Path.cwd()).settings
    if own.calls is not None and own.shapes:
        raise Complaint("--from and --shapes both give the inputs; leave one out")
    interpreter = judge_python(python)
    written = new_task(file, folder, own, settings.targets, interpreter)
    return (
        ExitCode.DONE
        if written is None
        else checked([written], (), written.id, targets, interpreter, as_json=as_json)
    )


@task_command.command("show")
@click.argument("task", shell_complete=complete_tasks)
@json_option
def show_command(task: str, *, as_json: bool) -> None:
    """Show a task, by name or folder."""
    if task.partition("/")[0] in public_suite_names(registry=registry()):
        show_public(task, registry(), as_json=as_json)
        return
    shown = find_task(task, registry=registry())
    if as_json:
        emit_json(entry(shown) | {"instruction": shown.instruction, "task_file": shown})
        return
    emit(f"{shown.id}: {shown.title}")
    emit(
        f"{shown.category}, difficulty {shown.difficulty} of 5, baseline {shown.baseline}, in {shown.folder}"
    )
    if shown.package is not None:
        modules = " with kernels of ".join([shown.package.module, *shown.package.kernels])
        emit(f"module {modules}, of the package in {shown.package.root}")
    emit("")
    emit(wrapped(paragraphs(shown.instruction.strip())) + "\n")
    for entry_point in shown.entry_points:
        emit(f"def {entry_point.signature}")
    emit("\n" + table((Column("", keep=True), Column("", least=40)), judged_by(shown)))
    emit("\n" + tables_text([cases_table(shown)]))


def judged_by(task: Task) -> list[tuple[str, str]]:
    """Return what is judged, and by what, beside the cases."""
    outputs = [
        f"{output.name} ({'dtype of the case' if output.dtype == 'input' else output.dtype}"
        f"{', written in place' if output.name in task.in_place else ''})"
        for output in task.outputs
    ]
    oracle = f"`oracle` in problem.py; `wavedeck task check {task.short_id}` tries wrong answers on it"
    if task.script is not None:
        own = task.script.oracle == "baseline"
        oracle = "weak: what the baseline gives" if own else f"the PyTorch function {task.script.oracle}"
    varying = [
        f"{name} from {axis.min}"
        + f" to {axis.max}" * (axis.max is not None)
        + f" in steps of {axis.multiple_of}" * (axis.multiple_of > 1)
        for name, axis in task.axes.items()
        if axis.vary
    ]
    hidden = [*varying, *(f"{kind} inputs" for kind in task.allows)]
    rows = [
        ("outputs", ", ".join(outputs)),
        *[("returns", ", ".join(name or "None or a number" for name in task.returns))] * bool(task.returns),
        ("oracle", oracle),
        ("hidden cases", ", ".join(hidden) or "other values"),
    ]
    host = [] if task.max_host_us is None else [f"host time above {task.max_host_us:g} us"]
    strict = ", ".join((*task.strict, *host))
    return rows + [("strict about", strict)] * bool(strict)


def paragraphs(markdown: str) -> str:
    """Return the text with each paragraph and list item on one line; code blocks stay as they are."""
    lines: list[str] = []
    in_code = False
    for line in markdown.splitlines():
        fence = line.lstrip().startswith("```")
        begins = in_code or fence or not line or line.lstrip().startswith(("- ", "* ", "#"))
        if begins or not lines or not lines[-1] or lines[-1].lstrip().startswith("```"):
            lines.append(line)
        else:
            lines[-1] += " " + line.lstrip()
        in_code ^= fence
    return "\n".join(lines)


@task_command.command("check")
@click.argument("name", metavar="NAME", shell_complete=complete_tasks_and_files)
@setting_options("targets")
@python_option
@json_option
def check_command(name: str, *, targets: str | None, python: str, as_json: bool) -> ExitCode:
    """Check a task, a suite, or the task in a folder.

    The first check reads the files. The second runs the judge: each baseline must be correct, wrong answers such as zeros must
    be refused, and every input must matter. Exit code: 1 if there is a problem.
    """
    interpreter = judge_python(python)
    folder = Path(name)
    if (folder / TASK_FILE).is_file():
        problems = check_task(folder)
        tasks = [] if problems else [find_task(name, registry=registry())]
        return checked(tasks, problems, name, targets, interpreter, as_json=as_json)
    is_suite = name in suite_names(registry=registry()) or name in public_suite_names(registry=registry())
    full_name = name if is_suite or "/" in name else load_task(name, registry=registry()).id
    problems = check_suite(full_name, registry=registry())
    tasks = []
    if not problems:
        tasks = (
            [load_task(full_name, registry=registry())]
            if "/" in full_name
            else [*load_suite(full_name, registry=registry())]
        )
    return checked(tasks, problems, name, targets, interpreter, as_json=as_json)


def checked(
    tasks: Sequence[Task],
    problems: Sequence[BadTask],
    name: str,
    targets: str | None,
    python: JudgePython,
    *,
    as_json: bool,
) -> ExitCode:
    """Print `problems`, or judge the tasks and print the findings if there are none; return the exit code."""
    from .checking import FIELDS, findings, weigh  # needs the judge's modules, which no listing needs

    reports = weigh(tasks, targets, python) if tasks else []
    if as_json:
        files = [
            {"file": str(problem.file), "key": problem.key, "problem": problem.problem}
            for problem in problems
        ]
        emit_json({"problems": files, "oracles": reports})
    elif problems:
        emit("\n".join(map(str, problems)))
    elif reports:
        emit(listing(FIELDS, reports))
        emit("\n" + ("\n".join(findings(reports)) or f"{name}: {len(reports)} checked, no problem found"))
    sound = not problems and all(report.sound for report in reports)
    return ExitCode.DONE if sound else ExitCode.NO
