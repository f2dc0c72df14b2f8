"""Keys of models: in the environment of an engine that is started, and of no other child process."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from engine.models.access import AZURE_TOKEN, HEADERS_VARIABLE, KEY_VARIABLE, PROVIDERS
from engine.process.keys import SECRETS, environment_with_keys, hidden_keys
from sessions import Home
from sessions.store.store import Store
from tests.support.command_line import run_script

GIT = """#!/bin/sh
echo "$@" >> {calls}
env >> {environment}
exec {git} "$@"
"""


def test_every_key_variable_is_hidden_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, "planted")
    with hidden_keys():
        assert not set(SECRETS) & set(os.environ)
        assert {environment_with_keys()[name] for name in SECRETS} == {"planted"}
    assert set(SECRETS) <= set(os.environ)


def test_key_variables_of_all_clients_are_known() -> None:
    used = {provider.key_variable for provider in PROVIDERS.values()}
    assert used | {KEY_VARIABLE, HEADERS_VARIABLE, AZURE_TOKEN} <= set(SECRETS)


def test_git_gets_no_key_from_a_command(tmp_path: Path, isolated_home: Path) -> None:
    home = Home(isolated_home)
    home.ensure()
    Store.of(home).close()
    program, calls, environment = tmp_path / "bin" / "git", tmp_path / "calls", tmp_path / "environment"
    program.parent.mkdir()
    program.write_text(GIT.format(calls=calls, environment=environment, git=shutil.which("git")))
    program.chmod(0o755)
    keys = dict.fromkeys(SECRETS, "planted-5ecret")
    environ = {
        **os.environ,
        **keys,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "SSH_AUTH_SOCK": "agent",
    }
    assert run_script("sessions", "fetch", str(home.store), environ=environ).code == 0
    assert {"version", "ls-remote"} <= set(calls.read_text().split())
    assert "SSH_AUTH_SOCK=agent" in environment.read_text()
    assert "5ecret" not in environment.read_text()
