"""Keeps the keys of models out of the environment of every child process.

A command of Wavedeck and an engine hide the keys while they run, so no program that they start (git, ssh, an editor, a worker)
inherits one. Only an engine that is started gets the keys, and from it an agent the keys of its own provider
(`engine.agent_programs.presets`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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

_hidden: dict[str, str] = {}


@contextmanager
def hidden_keys() -> Iterator[None]:
    """Hide the keys in the process's environment until the block ends; only `environment_with_keys` has them."""
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
