"""`wavedeck`: the table of commands, and the only place that turns errors into a line and an exit code.

`--help` and `--version` import click and nothing else of weight.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from engine.process.keys import hidden_keys

from .diagnostics import ExitCode, OutputGone, report, say, silence


class Listed(NamedTuple):
    """A command as `--help` lists it."""

    module: str
    help: str


COMMANDS = {
    "run": Listed("run", "Start agents on tasks and watch them."),
    "attach": Listed("attach", "Come back to a running session."),
    "resume": Listed("resume", "Resume a session after a crash or a stop."),
    "replay": Listed("replay", "Replay a past session from the store."),
    "sessions": Listed("sessions", "List, show, title, push, fetch and delete sessions."),
    "status": Listed("status", "Show what runs now, also as one line for tmux."),
    "wait": Listed("wait", "Wait until an attempt needs a decision, or until a session ends."),
    "best": Listed("best", "Show the fastest attempt of each task over all sessions."),
    "accept": Listed("decide", "Accept an attempt of a session."),
    "reject": Listed("decide", "Reject an attempt of a session."),
    "undo": Listed("decide", "Undo the decision about an attempt."),
    "stop": Listed("steer", "Stop a session, or one instance of it."),
    "pause": Listed("steer", "Pause a session, or one instance of it."),
    "go": Listed("steer", "End a pause."),
    "hint": Listed("steer", "Give an instance a hint for its next attempt."),
    "pin": Listed("steer", "Choose the attempt that an instance optimizes."),
    "ban": Listed("steer", "Exclude an attempt from the bases of its instance."),
    "fork": Listed("steer", "Add an instance that starts from an attempt."),
    "edit": Listed("steer", "Judge your edit of an attempt."),
    "measure": Listed("steer", "Time an attempt again, on one GPU or on all."),
    "gpu": Listed("steer", "Lend a GPU of a running session, or take it back."),
    "extend": Listed("steer", "Give a session more iterations, also after its end."),
    "eval": Listed("evaluate", "Judge one kernel file."),
    "suites": Listed("suites", "List, show, add and check suites of tasks."),
    "report": Listed("report", "Report the metrics of sessions as a table, Markdown, JSON or CSV."),
    "ablate": Listed("ablate", "Run geak with modules switched off and report what each module adds."),
    "record": Listed("record", "Make a recording of finished sessions."),
    "doctor": Listed("doctor", "Check what this machine can run."),
}


class Commands(click.Group):
    """Group that imports a command when it is called, and lists all commands without imports."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every command name, in the order of a day's work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tui.commands.{COMMANDS[cmd_name].module}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that `args` begin with; an error for an unknown command names the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, listed.help) for name, listed in COMMANDS.items()])


def print_version(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001  # click calls it so
    """Print the version and end."""
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import PackageNotFoundError, version

        try:
            click.echo(f"wavedeck {version('wavedeck')}")
        except PackageNotFoundError:
            click.echo("wavedeck, not installed: runs from its sources")
        ctx.exit()


@click.group(
    cls=Commands,
    name="wavedeck",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Environment: WAVEDECK_HOME is the folder of the sessions; WAVEDECK_LEASES is the folder of the GPU leases. "
    "Keys: ANTHROPIC_API_KEY, OPENAI_API_KEY, and WAVEDECK_MODEL_KEY for models named with @URL. "
    "Completion of commands, tasks and sessions: "
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
    from .commands.home import open_home

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
    message = error.format_message().strip()
    command = error.ctx.command_path if error.ctx else "wavedeck"
    return f"{message[:1].lower()}{message[1:].rstrip('.')}; see {command} --help"


def crashes_folder() -> Path:
    """Return the folder of kept tracebacks."""
    from sessions.home import home_from

    return home_from(os.environ).root / "crashes"
