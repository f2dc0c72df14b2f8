"""Runs a Python program in a process of its own, for tests of its output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LIMIT_S = 240.0


def python(code: str, *arguments: str, **environ: str) -> str:
    """Return what the program prints; `environ` adds to the environment."""
    return run_python("-c", code, *arguments, **environ)


def run_python(*arguments: str, **environ: str) -> str:
    """Return what Python prints with these arguments; `environ` adds to the environment."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | environ,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
