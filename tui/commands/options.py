"""Options and arguments that several commands share, with their shell completion."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def complete_tasks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the tasks that start with the typed text; none if a suite is broken, because a shell shows no errors."""
    from sessions.home import home_from
    from suites import SuiteError, load_suite, suite_names

    registry = home_from(os.environ).suites
    try:
        tasks = [
            task for suite in suite_names(registry=registry) for task in load_suite(suite, registry=registry)
        ]
    except SuiteError:
        return []
    return [
        CompletionItem(task.short_id, help=task.title)
        for task in tasks
        if task.short_id.startswith(incomplete)
    ]


def complete_sessions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names and titles of the sessions that start with the typed text, newest first, and `latest`."""
    from sessions import SessionsError
    from sessions.catalog import LATEST, list_sessions
    from sessions.home import home_from

    try:
        infos = list_sessions(home_from(os.environ))
    except SessionsError:
        return []
    items = [CompletionItem(LATEST, help=infos[0].name)] if infos else []
    for info in infos:
        items.append(CompletionItem(info.name, help=f"{info.state}  {info.title}".rstrip()))
        if info.title:
            items.append(CompletionItem(info.title, help=info.name))
    return [item for item in items if item.value.startswith(incomplete)]


def json_option(function: F) -> F:
    """Add the option `--json`, passed as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(
        function
    )


def session_argument(function: F) -> F:
    """Add the argument `SESSION`: what `find_session` takes."""
    return click.argument("session", shell_complete=complete_sessions)(function)


def targets_option(function: F) -> F:
    """Add the option `--targets`."""
    return click.option(
        "--targets",
        metavar="NAMES",
        help="Architectures to compile for; the first decides: gfx942,sm_90. [the devices' own; gfx942 on cpu]",
    )(function)


def predictions_options(function: F) -> F:
    """Add the options of `wavedeck eval` for a file of predictions."""
    options = (
        click.option("--suite", metavar="NAME", help="With --predictions: the public benchmark."),
        click.option(
            "--predictions",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Judge each prediction of a JSONL file or JSON array.",
        ),
        click.option(
            "--protocol",
            type=click.Choice(("wavedeck", "original")),
            default="wavedeck",
            help="With --predictions: this judge, or the benchmark's own definition of correct. [wavedeck]",
        ),
        click.option(
            "--only",
            metavar="N|TASK",
            default="",
            help="With --predictions: only the first N, or those for TASK.",
        ),
        click.option(
            "--again", is_flag=True, help="With --predictions: judge also those that have a result already."
        ),
        click.option(
            "--out",
            type=click.Path(path_type=Path),
            metavar="FOLDER",
            help="With --predictions: folder of the results in the suite's own format. [in the home folder]",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function
