"""The variables by which git is steered: those that lead it into another repository are dropped before git is called."""

from __future__ import annotations

import os
import re

SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "push.gpgSign=false")
"""Settings of every git command, stronger than those of any file: git starts no hook and no other program."""
_KEPT = re.compile(
    r"GIT_(SSH|ASKPASS|TERMINAL_PROMPT|PROXY_|SSL_|HTTP_|PROTOCOL|ALLOW_PROTOCOL|CONFIG_|AUTHOR_|COMMITTER_|EXEC_PATH|PYTHON_)"
)
"""Variables that reach another repository, name a person or a configuration, or say where git and GitPython are installed."""


def drop_git_variables() -> None:
    """Drop the other `GIT_*` from this process's environment: hooks, rebases and scripts set them for their own repository.

    The process's own environment, because GitPython reads it before it starts git.
    """
    for name in [name for name in os.environ if name.startswith("GIT_") and not _KEPT.match(name)]:
        os.environ.pop(name, None)
