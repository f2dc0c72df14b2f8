"""Runs the driver scripts of this folder: torch and triton load in processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def drive(script: str, *arguments: str, **variables: str) -> Any:
    """The JSON that a driver of this folder prints, with these environment variables."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=HERE.parent.parent,
        timeout=300,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
