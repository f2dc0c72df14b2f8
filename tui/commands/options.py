"""Options and arguments that several commands share, with their shell completion."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec
from click.shell_completion import CompletionItem

from engine.plan.settings import SETTINGS, help_of, value_name
from harness.hardware.targets import DEFAULT_TARGET
from tui.diagnostics import say

if TYPE_CHECKING:
    from harness.processes.starting.judge_python import JudgePython

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


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete files."""
    return [CompletionItem(incomplete, type="file")]


def complete_tasks_and_files(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the tasks that start with the typed text, and let the shell complete files."""
    return [*complete_tasks(ctx, param, incomplete), *complete_files(ctx, param, incomplete)]


def complete_sessions(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return `latest`, studies, and names and titles of sessions, newest first, that start with the typed text."""
    from sessions import SessionsError
    from sessions.catalog import LATEST, list_sessions
    from sessions.home import home_from

    try:
        infos = list_sessions(home_from(os.environ))
    except SessionsError:
        return []
    items = [CompletionItem(LATEST, help=infos[0].name)] if infos else []
    series = dict.fromkeys(info.settings.series.rpartition("/")[0] for info in infos)
    items += [CompletionItem(study, help="study") for study in series if study]
    for info in infos:
        items.append(CompletionItem(info.name, help=f"{info.state}  {info.title}".rstrip()))
        if info.title:
            items.append(CompletionItem(info.title, help=info.name))
    return [item for item in items if item.value.startswith(incomplete)]


class OwnOptions(msgspec.Struct, frozen=True):
    """Options about a kernel file."""

    shapes: tuple[str, ...] = ()
    reference: str = ""
    tolerance: str = ""
    yes: bool = False
    dry_run: bool = False
    send_only: tuple[Path, ...] = ()
    calls: Path | None = None


def own_options(function: F) -> F:
    """Add the options about a kernel that no task names yet, passed as `own`."""

    @functools.wraps(function)
    def with_own(**values: Any) -> Any:
        names = [name for name in OwnOptions.__struct_fields__ if name in values]
        return function(own=OwnOptions(**{name: values.pop(name) for name in names}), **values)

    options = (
        click.option(
            "--shapes",
            multiple=True,
            metavar="TEXT",
            help='Inputs of a kernel file: "x=8192x4096:fp16, w=4096:fp16"; "x=Mx4096:fp16, M=1,16,256" sweeps a size. '
            "Integers as a server has them: cu=B+1:i32:cu_seqlens(T), lengths(T), starts(LENS), t=BxW:i32:block_table(N,LENS,16), slots(N), permutation, "
            "distinct(E), sorted(0,9), pow2(1,64). Repeatable: one case each.",
        ),
        click.option(
            "--reference",
            default="",
            metavar="WHERE",
            help="PyTorch function that says what is right: FUNCTION, FILE:FUNCTION or PACKAGE.MODULE:FUNCTION; or an "
            'expression of the parameters: "F.silu(x) * y".',
        ),
        click.option(
            "--tolerance",
            default="",
            metavar="ALLOWED",
            help="Errors beyond those of careful arithmetic that are right too: 1e-2 of the value, 1ulp, or cosine:0.999; "
            'verdicts then say "weak".',
        ),
        yes_option,
        click.option("--dry-run", is_flag=True, help="Print what is assumed about a kernel file, and end."),
        click.option(
            "--send-only",
            multiple=True,
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="Only the text of these files may reach the provider of a model. Repeatable. [all that the page lists]",
        ),
    )
    decorated: Any = with_own
    for option in reversed(options):
        decorated = option(decorated)
    return cast("F", decorated)


def setting_options(*keys: str, **other_words: str) -> Callable[[F], F]:
    """Add the options of these settings, in this order. `tui.config` checks their values, which stay text.

    `other_words` replace the help of a key, where a command means it in another way.
    """

    def add(function: F) -> F:
        for key in reversed(keys):
            field = SETTINGS[key]
            words = other_words.get(field.name) or help_of(field)
            value = value_name(field)
            kind: dict[str, Any] = {"metavar": value} if value else {"is_flag": True, "default": None}
            function = click.option(f"--{key}", help=words, **kind)(function)
        return function

    return add


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask; go on.")
python_option = click.option(
    "--python",
    metavar="PATH",
    default="",
    help="Python of the judge, such as .venv/bin/python, with its own torch and Triton. [Wavedeck's own]",
)


def judge_python(path: str) -> JudgePython:
    """Return the interpreter that `--python` names; raises `BadPython` if it cannot judge."""
    from harness.processes.starting.judge_python import find_python
    from sessions.home import home_from

    return find_python(path, home_from(os.environ).judge_packages)


def say_default_target(refusing: Iterable[str], targets: Sequence[str]) -> None:
    """Say how to judge for NVIDIA, if the default target is among those that refuse a kernel, and no target was named."""
    if not targets and DEFAULT_TARGET in refusing:
        say(
            f"this is about {DEFAULT_TARGET}, the default target; judge kernels for NVIDIA with --targets sm_90"
        )


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
session_argument = click.argument("session", required=False, shell_complete=complete_sessions)
"""The argument `[SESSION]`: what `open_session` takes."""
