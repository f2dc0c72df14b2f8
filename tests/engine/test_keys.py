"""Keys of models: an engine that is started gets them, and no process has them where other programs can read them."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.agent_programs.presets import PRESETS
from engine.keys import KEY, environment_with_keys, hidden_keys, without_secrets
from engine.models.access import AZURE_TOKEN, HEADERS_VARIABLE, KEY_VARIABLE, PROVIDERS
from sessions import Home
from sessions.store.store import Store
from tests.support.command_line import run_script

GIT = """#!/bin/sh
echo "$@" >> {calls}
env >> {environment}
exec {git} "$@"
"""


KEYS = {
    *(provider.key_variable for provider in PROVIDERS.values()),
    *(name for preset in PRESETS.values() for name in preset.keys),
    *(KEY_VARIABLE, HEADERS_VARIABLE, AZURE_TOKEN, "OPENAI_ADMIN_KEY"),
}


def test_every_key_variable_is_hidden_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.setenv(name, "planted")
    with hidden_keys():
        assert not KEYS & set(os.environ)
        assert {environment_with_keys()[name] for name in KEYS} == {"planted"}
    assert set(os.environ) >= KEYS


def test_variables_of_other_programs_are_not_hidden() -> None:
    names = ("SSH_AUTH_SOCK", "GITHUB_TOKEN", "RAY_AUTH_TOKEN", "GIT_ASKPASS", "WANDB_API_KEY", "KEYMAP")
    assert not any(map(KEY.fullmatch, names))


def test_git_gets_no_key_from_a_command(tmp_path: Path, isolated_home: Path) -> None:
    home = Home(isolated_home)
    home.ensure()
    Store.of(home).close()
    program, calls, environment = tmp_path / "bin" / "git", tmp_path / "calls", tmp_path / "environment"
    program.parent.mkdir()
    program.write_text(GIT.format(calls=calls, environment=environment, git=shutil.which("git")))
    program.chmod(0o755)
    keys = dict.fromkeys(KEYS, "planted-5ecret")
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


def test_an_engine_gets_keys_that_its_own_environment_does_not_have() -> None:
    environ = {**os.environ, "OPENAI_API_KEY": "planted=5ecret\n", "MY_TOKEN": "planted-5ecret", "LANG": "C"}
    public, secrets = without_secrets(environ)
    assert "5ecret" not in str(public)
    assert public["LANG"] == "C"
    code = "from engine.keys import receive_environment; print(receive_environment())"
    done = subprocess.run([sys.executable, "-c", code], env=public, input=secrets, capture_output=True)
    received = ast.literal_eval(done.stdout.decode())
    assert received.items() >= {"OPENAI_API_KEY": "planted=5ecret\n", "MY_TOKEN": "planted-5ecret"}.items()


def test_the_memory_of_a_command_is_closed_to_other_programs() -> None:
    code = "with hidden_keys(): print(syscalls.is_dumpable())"
    imports = "from engine.keys import hidden_keys; from harness.linux import syscalls"
    done = subprocess.run([sys.executable, "-c", f"{imports}\n{code}"], capture_output=True, text=True)
    assert done.stdout == "False\n"
