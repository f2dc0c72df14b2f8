"""`wavedeck`: the table of commands, and the one place where errors become a line and an exit code.

Nothing heavy is imported here: `--help` and `--version` need click alone.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from .diagnostics import ExitCode, OutputGone, report, say, silence


class Listed(NamedTuple):
    """A command as `--help` lists it."""

    module: str
    help: str


COMMANDS = {
    "run": Listed("run", "Start agents on tasks and watch them."),
    "attach": Listed("attach", "Come back to a running session."),
    "resume": Listed("resume", "Go on with a session after a crash or a stop."),
    "replay": Listed("replay", "See a past session again, from the store."),
    "sessions": Listed("sessions", "List, show and delete sessions."),
    "accept": Listed("decide", "Accept an attempt of a session."),
    "reject": Listed("decide", "Reject an attempt of a session."),
    "undo": Listed("decide", "Take the decision about an attempt back."),
    "eval": Listed("evaluate", "Judge one kernel file."),
    "suites": Listed("suites", "List, show, add and check suites of tasks."),
    "report": Listed("report", "Tell sessions' metrics, as a table, Markdown, JSON or CSV."),
    "ablate": Listed("ablate", "Run geak with modules switched off, row by row, and tell what each adds."),
    "record": Listed("record", "Make a recording of finished sessions."),
    "doctor": Listed("doctor", "Say what this machine has and what follows from it."),
}


class Commands(click.Group):
    """A group whose commands are imported when they are asked for, and listed without that."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, from its own module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tui.commands.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that `args` begin with; an unknown one is told with the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in COMMANDS.items()])


def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  # click calls it so
    """Print the version and end."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"wavedeck {version('wavedeck')}")
        except PackageNotFoundError:
            click.echo("wavedeck, not installed: run from its sources")
        ctx.exit()


@click.group(
    cls=Commands,
    name="wavedeck",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Environment: WAVEDECK_HOME is where sessions are kept; WAVEDECK_LEASES is the folder of the GPUs' leases; "
    "ANTHROPIC_API_KEY, OPENAI_API_KEY and WAVEDECK_MODEL_KEY (for models named with @URL) are the keys. Completion of commands, tasks and sessions: "
    'eval "$(_WAVEDECK_COMPLETE=bash_source wavedeck)", or zsh_source, fish_source.',
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print the version.",
)
@click.pass_context
def wavedeck(ctx: click.Context) -> ExitCode | None:
    """Language-model agents that write Triton kernels, a judge for what they write, and a cockpit to watch and decide.

    Without a command: the app with all sessions; where there is no terminal, the list of sessions and what to do next.
    """
    if ctx.invoked_subcommand is not None:
        return None
    from .commands.home import open_home

    return open_home(os.environ)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code. Whatever goes wrong is one line on standard error."""
    try:
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
    """The exit code of a command, with its errors told."""
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
    except Exception as error:  # noqa: BLE001  # the program's last line: a traceback on a screen is a bug
        return report(error, crashes=crashes_folder())
    return code if isinstance(code, int) else ExitCode.DONE


def usage_line(error: click.UsageError) -> str:
    """What is wrong with the command line, and where its help is."""
    message = error.format_message().strip()
    command = error.ctx.command_path if error.ctx else "wavedeck"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see {command} --help"


def crashes_folder() -> Path:
    """Where tracebacks are kept."""
    from sessions.home import home_from

    return home_from(os.environ).root / "crashes"
