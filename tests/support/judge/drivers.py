"""Runs the scripts of `tests/harness/drivers`: each loads torch and triton in its own process and prints JSON."""

from __future__ import annotations

import json
from typing import Any

from tests.support.programs import ROOT, run_python

DRIVERS = ROOT / "tests" / "harness" / "drivers"


def drive(script: str, *arguments: str, **variables: str) -> Any:
    """Runs one script with extra environment variables and returns the JSON that it prints."""
    return json.loads(run_python(str(DRIVERS / script), *arguments, **variables))


def line_of(file: str, text: str) -> int:
    """Number of the only line that contains `text` in a file of `tests/harness/drivers`."""
    lines = (DRIVERS / file).read_text(encoding="utf-8").splitlines()
    (number,) = [number for number, line in enumerate(lines, 1) if text in line]
    return number
