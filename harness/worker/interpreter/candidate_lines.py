"""Finds the running line of the candidate."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

_PLUMBING = (str(Path(np.__file__).parent), str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))

Line = tuple[str, int]
UNKNOWN = ("kernel.py", 0)

replayed: Any = SimpleNamespace(line=None)
"""File name and line of an operation that runs without the kernel's frame; see `tracing`."""


def candidate_line() -> Line:
    """File name and line of the candidate's innermost frame."""
    if replayed.line is not None:
        line: Line = replayed.line
        return line
    frame: Any = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_PLUMBING) and "/triton/" not in file and not file.startswith("<"):
            return Path(file).name, frame.f_lineno
        frame = frame.f_back
    return UNKNOWN
