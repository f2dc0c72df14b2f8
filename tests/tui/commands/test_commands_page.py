"""docs/commands.md says what `--help` says, and is short."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import click
import pytest

from tests.support.command_line import ROOT
from tui.cli import COMMANDS

PAGE = ROOT / "docs" / "commands.md"
MOST_WORDS = 5_600


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("commands_page", ROOT / ".ci" / "commands_page.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_page_of_commands_is_what_the_help_says(script: ModuleType) -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == script.page(), "write it again: .venv/bin/python .ci/commands_page.py"


def test_options_have_one_name_and_one_meaning_in_every_command(script: ModuleType) -> None:
    meanings: dict[str, set[str]] = {
        "--yes": set(),
        "--devices": set(),
        "--targets": set(),
        "--python": set(),
    }
    for ctx in script.contexts():
        for option in (option for option in ctx.command.params if isinstance(option, click.Option)):
            for pair in ({"-o", "--out"}, {"-y", "--yes"}):
                assert not pair & {*option.opts} or pair <= {*option.opts}, ctx.command_path
            assert not {"--device", "--output"} & {*option.opts}, ctx.command_path
            for name in meanings.keys() & {*option.opts}:
                if ctx.info_name != "doctor":  # the GPUs of --verify-gpu
                    meanings[name].add(str(option.help))
    assert [name for name, texts in meanings.items() if len(texts) != 1] == []


def test_page_of_commands_lists_each_command_once_and_has_its_section() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^\| \w+ \| \[`(\w+)`\]", text, re.MULTILINE) == [*COMMANDS]
    assert re.findall(r"^## wavedeck (\w+)$", text, re.MULTILINE) == [*COMMANDS]
    assert len(text.split()) <= MOST_WORDS


def test_pages_that_the_page_of_commands_names_exist() -> None:
    for page in re.findall(r"\]\((\w[^)#]*)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / page).is_file()
