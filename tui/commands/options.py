"""Options and arguments that several commands share, and what the shell completes them with."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

F = TypeVar("F", bound=Callable[..., Any])


def complete_tasks(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Tasks whose name begins as typed; nothing where suites are not in order, since a shell shows no errors."""
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
    """Sessions whose name begins as typed, newest first."""
    from sessions import SessionsError
    from sessions.catalog import list_sessions
    from sessions.home import home_from

    try:
        known = list_sessions(home_from(os.environ))
    except SessionsError:
        return []
    return [CompletionItem(each.name, help=each.state) for each in known if each.name.startswith(incomplete)]


def json_option(function: F) -> F:
    """`--json`, as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")(
        function
    )


def session_argument(function: F) -> F:
    """`SESSION`: a name or any prefix that fits one session alone."""
    return click.argument("session", shell_complete=complete_sessions)(function)


def targets_option(function: F) -> F:
    """`--targets`."""
    return click.option(
        "--targets",
        metavar="NAMES",
        help="Architectures to compile for, the first decides: gfx942,sm_90. [the devices' own; gfx942 on cpu]",
    )(function)
