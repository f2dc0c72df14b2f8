"""Keeps the keys of models out of the environment of every child process, and out of reach of the user's other processes.

A command of Wavedeck hides the keys while it runs, so no program that it starts (git, ssh, an editor, a worker) inherits one.
Only an engine that is started gets the keys. They come through a pipe, because an agent may be able to read the environment with
which a process was started. From the engine an agent gets the keys of its own provider (`engine.agent_programs.presets`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SECRETS = (
    "WAVEDECK_MODEL_KEY",
    "WAVEDECK_MODEL_HEADERS",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_ADMIN_KEY",
    "AZURE_OPENAI_API_KEY",
    "AZURE_OPENAI_AD_TOKEN",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CODEX_API_KEY",
    "LLM_API_KEY",
)
"""Variables with a key, or with headers that hold one."""
SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)
"""Variables with such a name, too, stay out of the environment of an engine, and of an agent unless its preset names them."""

_hidden: dict[str, str] = {}


@contextmanager
def hidden_keys() -> Iterator[None]:
    """Hide the keys in the process's environment until the block ends; only `environment_with_keys` has them.

    The memory of the process is closed to other processes for good.
    """
    close_memory()
    for name in SECRETS:
        if name in os.environ:
            _hidden[name] = os.environ.pop(name)
    try:
        yield
    finally:
        os.environ.update(_hidden)
        _hidden.clear()


def environment_with_keys() -> dict[str, str]:
    """Returns the process's environment with the keys."""
    return {**os.environ, **_hidden}


def close_memory() -> None:
    """Close this process's memory and environment to other processes of the same user; no effect outside of Linux."""
    if sys.platform == "linux":
        # Imported here: the command line starts without the judge.
        from harness.linux import syscalls

        syscalls.keep_undumpable()


def without_secrets(environ: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """Returns the environment for a process that is started, and what `receive_secrets` reads there from its standard input."""
    # Ray reads its own token from the process's environment.
    secrets = {
        name for name in environ if name in SECRETS or (SECRET.search(name) and not name.startswith("RAY_"))
    }
    lines = [os.fsencode(f"{name}={environ[name]}") for name in secrets]
    return {name: value for name, value in environ.items() if name not in secrets}, b"\0".join(lines)


def receive_secrets() -> dict[str, str]:
    """Returns the secrets that the starting process sent."""
    lines = os.fsdecode(sys.stdin.buffer.read()).split("\0")
    return dict(line.split("=", 1) for line in lines if line)
