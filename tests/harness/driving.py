"""Runs the driver scripts of this folder: torch and triton load in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def drive(script: str, *arguments: str) -> Any:
    """The JSON that a driver of this folder prints."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parent.parent,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
