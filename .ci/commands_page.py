"""Writes docs/commands.md from the help of the commands: `.venv/bin/python .ci/commands_page.py`."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click

from tui.actions.catalogue import COMMANDS
from tui.cli import wavedeck
from tui.commands.sections import Sectioned

PAGE = Path(__file__).parent.parent / "docs" / "commands.md"
SHARED = 3
"""An option that as many commands have, with the same words, is explained once."""
Record = tuple[str, str]


def walk(command: click.Command, parent: click.Context | None, name: str) -> Iterator[click.Context]:
    """Yield the context of a command, then those of its subcommands."""
    ctx = click.Context(command, parent=parent, info_name=name)
    yield ctx
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            subcommand = command.get_command(ctx, sub)
            assert subcommand is not None
            if not subcommand.hidden:
                yield from walk(subcommand, ctx, sub)


@cache
def contexts() -> list[click.Context]:
    """Return the context of every command but `wavedeck` itself."""
    return [*walk(wavedeck, None, "wavedeck")][1:]


def sections(ctx: click.Context) -> dict[str, list[Record]]:
    """Return the options of a command with their help, by section; without `--help`."""
    if isinstance(ctx.command, Sectioned):
        titled = ctx.command.records(ctx)
    else:
        options = [option for option in ctx.command.params if isinstance(option, click.Option)]
        titled = {"": [record for option in options if (record := option.get_help_record(ctx))]}
    return {
        title: [record for record in listed if "--help" not in record[0]] for title, listed in titled.items()
    }


@cache
def shared() -> list[Record]:
    """Return the options that several commands have."""
    counts = Counter(record for ctx in contexts() for listed in sections(ctx).values() for record in listed)
    return [record for record, count in counts.items() if count >= SHARED]


def option_lines(options: list[Record]) -> list[str]:
    """Return a list item for each option."""
    return [f"- `{name}`: {marked(words)}" for name, words in options]


def marked(words: str) -> str:
    """Return a text with its commands, options and pages in Markdown."""
    parts = words.split("`")
    for index in range(0, len(parts), 2):
        text = re.sub(r"(?<![\w`-])(--[a-z][a-z0-9-]*)", r"`\1`", parts[index])
        text = re.sub(r"docs/([a-z]+)\.md", r"[\1.md](\1.md)", text)
        parts[index] = re.sub(r"([<*])", r"\\\1", text)
    return "`".join(parts)


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help text; one that begins with a backspace keeps its lines, as code."""
    blocks = inspect.cleandoc(text).partition("\f")[0].split("\n\n")
    return [
        "```\n" + block.removeprefix("\b\n") + "\n```"
        if block.startswith("\b")
        else marked(" ".join(block.split()))
        for block in blocks
        if block.strip()
    ]


def section(ctx: click.Context) -> list[str]:
    """Return the section of a command."""
    command = ctx.command
    level = "##" if ctx.parent is not None and ctx.parent.parent is None else "###"
    pieces = " ".join(command.collect_usage_pieces(ctx)).removeprefix("[OPTIONS] ")
    lines = [f"{level} {ctx.command_path}", f"`{ctx.command_path} {pieces}`", *paragraphs(command.help or "")]
    shared_names = []
    for title, listed in sections(ctx).items() if ctx.info_name != "tune" else ():
        own = [record for record in listed if record not in shared()]
        shared_names += [f"`{name}`" for name, words in listed if (name, words) in shared()]
        lines += [f"{title}:"] * bool(title and own) + ["\n".join(option_lines(own))] * bool(own)
    lines += [f"Also {', '.join(shared_names)}."] * bool(shared_names)
    return [*lines, *paragraphs(command.epilog or "")]


def page() -> str:
    """Return the page."""
    rows = [
        f"| {action.group} | [`{name}`](#wavedeck-{name}) | {marked(action.does)} |"
        for name, action in COMMANDS.items()
    ]
    blocks = [
        "# Commands",
        "For people who type or script `wavedeck`. `.ci/commands_page.py` writes this page from `--help`.",
        *paragraphs(wavedeck.help or ""),
        "\n".join(["| group | command | does |", "| --- | --- | --- |", *rows]),
        "## For every command",
        *paragraphs(wavedeck.epilog or ""),
        "Options of several commands:",
        "\n".join(option_lines(shared())),
    ]
    for ctx in contexts():
        blocks += section(ctx)
    return "\n\n".join(blocks) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
