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

KEY = re.compile(
    r"(ANTHROPIC|OPENAI|AZURE_OPENAI|GEMINI|GOOGLE|CLAUDE_CODE|CODEX|LLM|WAVEDECK_MODEL)_(\w+_)?(KEY|TOKEN|HEADERS)"
)
"""Variables with a key of a model, or with headers that hold one."""
_READ_BY_LIBRARIES = re.compile(r"RAY_.*|.*_proxy", re.IGNORECASE)
"""Variables that libraries read from the process's own environment: Ray its token, SDKs the proxies."""

_hidden: dict[str, str] = {}


@contextmanager
def hidden_keys() -> Iterator[None]:
    """Hide the keys in the process's environment until the block ends; only `environment_with_keys` has them.

    The memory of the process is closed to other processes for good.
    """
    close_memory()
    for name in filter(KEY.fullmatch, list(os.environ)):
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
    """Returns the environment for a process, and the bytes that its `receive_environment` reads from standard input."""
    # Imported here: the command line starts without the tasks.
    from suites.privacy import holds_key

    secrets = {
        name
        for name, value in environ.items()
        if holds_key(name, value) and not _READ_BY_LIBRARIES.fullmatch(name)
    }
    lines = [os.fsencode(f"{name}={environ[name]}") for name in secrets]
    return {name: value for name, value in environ.items() if name not in secrets}, b"\0".join(lines)


def receive_environment() -> dict[str, str]:
    """Returns the process's environment with the secrets that the starting process sends."""
    lines = os.fsdecode(sys.stdin.buffer.read()).split("\0")
    return {**os.environ, **dict(line.split("=", 1) for line in lines if line)}
