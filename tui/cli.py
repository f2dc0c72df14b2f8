"""`wavedeck`: the table of commands, and the only place that turns errors into a line and an exit code.

`--help` and `--version` import click and nothing else of weight.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError
from click.shell_completion import CompletionItem

from engine.keys import hidden_keys

from .actions.catalogue import COMMANDS, Group
from .commands.former import VERBS, without_former_names
from .diagnostics import ExitCode, OutputGone, report, say, silence

WIDTH = max(map(len, COMMANDS))


class Commands(click.Group):
    """Group that imports a command when it is called, and lists all commands without imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every command name, group by group."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in COMMANDS:
            return None
        action = COMMANDS[cmd_name]
        if not action.module:
            from .commands.steer import command_of

            return command_of(action)
        module = importlib.import_module(f"tui.commands.{action.module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begin with; an error for an unknown command names the nearest.

        A former name runs its new command, and a line says so; completion does not know it.
        """
        if not ctx.resilient_parsing:
            args, remarks = without_former_names(args)
            for remark in remarks:
                say(remark)
            if args[0] not in COMMANDS and not args[0].startswith("-"):
                raise click.NoSuchCommand(args[0], possibilities=[*COMMANDS, *VERBS], ctx=ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Invoke the command. An option without its value is an error that does not know its command."""
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            error.ctx = error.ctx or click.Context(self, info_name=f"wavedeck {ctx.invoked_subcommand}")
            raise

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that start with the typed text, each with its group, without imports; then options."""
        items = [
            CompletionItem(name, help=f"{action.group}: {action.does}")
            for name, action in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return items + click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands into `--help`, in their groups."""
        for group in Group:
            rows = [
                (f"{name:<{WIDTH}}", action.does)
                for name, action in COMMANDS.items()
                if action.group is group
            ]
            if rows:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(rows)


def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  # click calls it so
    """Print the version and end."""
    if wanted and not ctx.resilient_parsing:
        from harness.linux.installed import installed_version

        version = installed_version("wavedeck")
        click.echo(f"wavedeck {version}" if version else "wavedeck, not installed: runs from its sources")
        ctx.exit()


EPILOG = """SESSION is a name, a unique prefix, a unique title, `latest`, or `example`, which comes with Wavedeck. A study
means its session that runs, else the one to resume. SESSION may be left out if exactly one runs or exists; commands that only
read then take the newest. An INSTANCE is softmax#2, an ATTEMPT softmax#2/7; latest:softmax#2/7 names the session too.

Settings: options, then WAVEDECK_<OPTION>, ./wavedeck.toml, $XDG_CONFIG_HOME/wavedeck/config.toml. Defaults are in brackets.

Exit codes: 0 done, 1 the answer is no, 2 wrong usage, 3 Wavedeck or the machine failed, 130 interrupted. Standard output is
data; an error is one line on standard error.

Environment: WAVEDECK_HOME is the folder of the sessions, WAVEDECK_LEASES that of the GPU leases. ANTHROPIC_API_KEY,
OPENAI_API_KEY, and WAVEDECK_MODEL_KEY for models named with @URL, reach no judge, file or commit.

Shell completion, also with zsh_source or fish_source:

\b
  eval "$(_WAVEDECK_COMPLETE=bash_source wavedeck)"
"""


@click.group(
    cls=Commands,
    name="wavedeck",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version.",
)
@click.option("--ascii", "only_ascii", is_flag=True, help="Draw the cockpit in ASCII only.")
@click.pass_context
def wavedeck(ctx: click.Context, *, only_ascii: bool) -> ExitCode | None:
    """Language-model agents that write Triton kernels, a judge for the kernels, and a cockpit to watch and decide.

    Without a command: the app with all sessions; without a terminal: the list of sessions and the next command.
    """
    if only_ascii:
        os.environ["WAVEDECK_ASCII"] = "true"
    if ctx.invoked_subcommand is not None:
        return None
    from .commands.look.home import open_home

    return open_home(os.environ)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. Every error is one line on standard error."""
    try:
        with hidden_keys():
            code = run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        silence(1)
        return ExitCode.DONE
    except OutputGone as gone:
        silence(1)
        if not gone.why:
            return ExitCode.DONE
        say(gone.why)
        return ExitCode.FAILED
    return code


def run(arguments: Sequence[str] | None) -> int:
    """Run a command, report its errors and return its exit code."""
    try:
        code = wavedeck.main(
            args=None if arguments is None else list(arguments), prog_name="wavedeck", standalone_mode=False
        )
    except click.UsageError as error:
        say(usage_line(error))
        return ExitCode.USAGE
    except click.ClickException as error:
        say(error.format_message())
        return ExitCode.USAGE
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        return ExitCode.INTERRUPTED
    except (BrokenPipeError, OutputGone):
        raise
    except Exception as error:  # noqa: BLE001  # last resort: a traceback on the screen is a bug
        return report(error, crashes=crashes_folder())
    return code if isinstance(code, int) else ExitCode.DONE


def usage_line(error: click.UsageError) -> str:
    """Return the usage error on one line, with the command that shows the help."""
    message = re.sub(
        r"\. \(?Did you mean (?:one of: )?(.*?)\?\)?$", r"; nearest: \1", error.format_message().strip()
    )
    if isinstance(error, NoArgsIsHelpError) and isinstance(error.ctx.command, click.Group):
        message = f"missing command: {', '.join(error.ctx.command.list_commands(error.ctx))}"
    command = error.ctx.command_path if error.ctx else "wavedeck"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see {command} --help"


def crashes_folder() -> Path:
    """Return the folder of kept tracebacks."""
    from sessions.home import home_from

    return home_from(os.environ).root / "crashes"
