"""`wavedeck suites`: list and add suites of tasks; judge references of public benchmarks, and predictions for them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sessions.home import home_from
from suites import Task, add_suite, find_public_task, load_suite, public_suite_names, suite_names
from suites.public.task import PublicTask, SuiteKind
from suites.registry import added_folder, clones_of, remove_suite, suite_folder, suite_licences
from tui.commands.options import json_option, setting_options, yes_option
from tui.diagnostics import Complaint, ExitCode, say
from tui.facts.tables import Column, Field, Number
from tui.print.plain import emit, emit_json, interactive, listing, table

from .public_suites import CLONES, list_public, public_entry, public_suite


@click.group(name="suites", invoke_without_command=True)
@json_option
@click.pass_context
def suites_command(ctx: click.Context, *, as_json: bool) -> None:
    """Add, list, show and remove suites of tasks; judge references of public benchmarks, and predictions for them."""
    if ctx.invoked_subcommand is None:
        list_all(as_json=as_json)


def registry() -> Path:
    """Return the file with the added suites."""
    return home_from(os.environ).suites


def complete_suites(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the suites that start with the typed text."""
    names = (*suite_names(registry=registry()), *public_suite_names(registry=registry()))
    return [name for name in names if name.startswith(incomplete)]


@suites_command.command("list")
@click.argument("name", required=False, shell_complete=complete_suites)
@json_option
def list_command(name: str | None, *, as_json: bool) -> None:
    """List the tasks of the suite NAME, or of all suites."""
    if name is None:
        list_all(as_json=as_json)
    elif name in public_suite_names(registry=registry()):
        list_public(name, registry(), as_json=as_json)
    else:
        list_tasks(load_suite(name, registry=registry()), as_json=as_json)


def list_all(*, as_json: bool) -> None:
    """Print the tasks of all suites; clones of public benchmarks have hundreds, so the table has one line for each clone."""
    tasks = [
        task for name in suite_names(registry=registry()) for task in load_suite(name, registry=registry())
    ]
    clones = public_suite_names(registry=registry())
    if as_json:
        public = [public_entry(task) for name in clones for task in public_suite(name, registry()).tasks]
        emit_json([*(entry(task) for task in tasks), *public])
        return
    list_tasks(tasks, as_json=False)
    if clones:
        emit("\n" + listing(CLONES, clones_of(registry())))


TASKS: tuple[Field[Task], ...] = (
    Field(Column("task", keep=True), lambda task: task.short_id),
    Field(Column("suite", keep=True, drop=2), lambda task: task.suite),
    Field(Number("difficulty"), lambda task: str(task.difficulty)),
    Field(Number("cases"), lambda task: str(len(task.open_cases))),
    Field(Column("category", keep=True, drop=1), lambda task: task.category),
    Field(Column("title", least=30), lambda task: task.title),
)


def list_tasks(tasks: Sequence[Task], *, as_json: bool) -> None:
    """Print tasks, as JSON or a table."""
    if as_json:
        emit_json([entry(task) for task in tasks])
        return
    emit(listing(TASKS, tasks))


def entry(task: Task) -> dict[str, object]:
    """Return a task as `--json` lists it."""
    return {
        "task": task.id,
        "suite": task.suite,
        "name": task.name,
        "title": task.title,
        "category": task.category,
        "difficulty": task.difficulty,
        "entry_points": [entry_point.signature for entry_point in task.entry_points],
        "cases": [case.name for case in task.open_cases],
        "exam_cases": [case.name for case in task.exam_cases],
        "baseline": task.baseline,
        "folder": str(task.folder),
        "package": task.package,
    }


@suites_command.command("add")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice([kind.value for kind in SuiteKind]),
    help="Public benchmark of the clone PATH, if it holds several.",
)
def add_command(name: str, path: Path, kind: str | None) -> None:
    """Add a folder or clone as the suite NAME.

    PATH holds folders of tasks, or is a clone of a public benchmark; its files say which. It stays where it is.
    """
    home_from(os.environ).ensure()
    clone = add_suite(name, path, registry(), kind=SuiteKind(kind) if kind else None)
    if clone is None:
        say(f"suite {name} added; check it with: wavedeck task check {name}")
        return
    suite = public_suite(name, registry())
    unsupported = sum(bool(task.unsupported) for task in suite.tasks)
    reasons = f", {unsupported} of them cannot be judged" if unsupported else ""
    say(
        f"suite {name} added: {clone.kind}, {len(suite.tasks)} tasks{reasons}; list them with: wavedeck suites list {name}"
    )


@suites_command.command("remove")
@click.argument("name", shell_complete=complete_suites)
@yes_option
def remove_command(name: str, *, yes: bool) -> None:
    """Remove the added suite NAME from the list. Its folder and the sessions on its tasks stay."""
    folder = added_folder(name, registry())  # before the question
    if not yes and not interactive(os.environ):
        raise Complaint(f"there is no terminal to ask whether to remove {name}: add --yes")
    if not yes and not click.confirm(f"remove {name}? Its folder {folder} stays.", err=True):
        say(f"{name} was not removed")
        return
    remove_suite(name, registry())
    say(f"suite {name} removed; its folder stays: {folder}")


@suites_command.command("show")
@click.argument("name", shell_complete=complete_suites)
@json_option
def show_command(name: str, *, as_json: bool) -> None:
    """Show benchmark, folder, licence and size of suite NAME."""
    tasks: Sequence[Task | PublicTask]
    clone = next((clone for clone in clones_of(registry()) if clone.name == name), None)
    if clone is not None:
        tasks, folder = public_suite(name, registry()).tasks, clone.folder
    else:
        tasks, folder = load_suite(name, registry=registry()), suite_folder(name, registry())
    facts = {
        "suite": name,
        "benchmark": str(clone.kind) if clone else None,
        "folder": str(folder),
        "licence": suite_licences(registry()).get(name),
        "tasks": len(tasks),
        "unsupported": sum(isinstance(task, PublicTask) and bool(task.unsupported) for task in tasks),
    }
    if as_json:
        emit_json(facts)
        return
    rows = [(key, str(fact)) for key, fact in facts.items() if fact]
    emit(table((Column("", keep=True), Column("", least=40)), rows))
    emit(f"\nits tasks: wavedeck suites list {name}")


@suites_command.command("judge")
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    type=click.Choice(("wavedeck", "original")),
    default="wavedeck",
    help="This judge, or the benchmark's own definition of correct. [wavedeck]",
)
@click.option("--only", metavar="N|TASK", default="", help="Only the first N predictions, or those for TASK.")
@click.option("--again", is_flag=True, help="Judge also those that have a result already.")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Folder of the results in the suite's own format. [in the home folder]",
)
@setting_options(
    "devices", "targets", "seed", seed="Seed of the inputs; the same seed gives the same verdict. [0]"
)
@json_option
def judge_command(
    name: str,
    file: Path,
    *,
    protocol: str,
    only: str,
    again: bool,
    out: Path | None,
    as_json: bool,
    **flags: Any,
) -> ExitCode:
    """Judge predictions for the public benchmark NAME.

    FILE has them as JSON lines or a JSON array. An interrupted run goes on where it ended. Exit code: 0 if every prediction
    was judged, whatever its verdict; 1 if a line was not judged; 3 if the judge failed on some.
    """
    from tui.config import load

    from .predictions import judge_predictions  # needs the judge's modules

    settings = load(flags, environ=os.environ, folder=Path.cwd()).settings
    return judge_predictions(
        name, file, settings, protocol=protocol, only=only, again=again, out=out, as_json=as_json
    )


@suites_command.command("references")
@click.argument("name")
@setting_options("devices", "targets")
@click.option("--only", type=click.IntRange(min=1), metavar="N", help="Judge only the first N tasks.")
@click.option(
    "--task", "names", multiple=True, metavar="TASK", help="Judge only this task of the suite. Repeatable."
)
@click.option("--again", is_flag=True, help="Record and judge also references that have a result already.")
@json_option
def references_command(
    name: str,
    *,
    only: int | None,
    names: tuple[str, ...],
    again: bool,
    as_json: bool,
    **flags: Any,
) -> ExitCode:
    """Judge the references of the public benchmark NAME.

    A Triton reference is judged as a candidate, a PyTorch reference as an oracle. An interrupted run goes on where it ended.
    Exit code: 1 if a reference is wrong, 3 if the judge failed on one.
    """
    import asyncio

    from harness.recording.references import Result  # needs the judge's modules, which no listing needs
    from tui.config import load

    from .references import judge_all, results_table, summary

    settings = load(flags, environ=os.environ, folder=Path.cwd()).settings
    tasks = public_suite(name, registry()).tasks
    if names:
        prefix = f"{name}/"
        wanted = {find_public_task(prefix + task.removeprefix(prefix), tasks).id for task in names}
        tasks = tuple(task for task in tasks if task.id in wanted)
    results = asyncio.run(
        judge_all(tasks[:only], registry(), devices=settings.devices, targets=settings.targets, again=again)
    )
    if as_json:
        emit_json(results)
    elif results:
        emit(results_table(results) + "\n\n" + summary(results))
    kinds = {result.result for result in results}
    if Result.LOST in kinds:
        say("the judge failed on some; give the same command again to judge them")
        return ExitCode.FAILED
    return ExitCode.NO if Result.WRONG in kinds else ExitCode.DONE
