"""Draws some of many similar cases for `make test`; `make soak` runs all."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def drawn(cases: Sequence[T], count: int) -> list[T]:
    """Return `count` of the cases; all of them in the soak.

    The commit is the seed: all workers of a run draw the same cases, and each commit draws anew.
    """
    if os.environ.get("WAVEDECK_SOAK") == "1":
        return list(cases)
    return random.Random(_commit()).sample(cases, count)


@cache
def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    ).stdout
