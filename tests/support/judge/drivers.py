"""Runs the scripts of `tests/harness/drivers`: each loads torch and triton in its own process and prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[3]
DRIVERS = PROJECT / "tests" / "harness" / "drivers"


def drive(script: str, *arguments: str, **variables: str) -> Any:
    """Runs one script with extra environment variables and returns the JSON that it prints."""
    done = subprocess.run(
        [sys.executable, str(DRIVERS / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT,
        timeout=300,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def line_of(file: str, text: str) -> int:
    """Number of the only line that contains `text` in a file of `tests/harness/drivers`."""
    lines = (DRIVERS / file).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number
