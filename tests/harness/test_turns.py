"""Loops that a compiler runs ahead in: what is refused is what the compiler of each target does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "pipelined_kernels.py"


@pytest.mark.judge
@pytest.mark.parametrize("target", ["gfx942", "sm_90"])
def test_loads_are_refused_where_a_compiler_makes_them_before_the_store(target: str, tmp_path: Path) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), target, how],
            stdout=subprocess.PIPE,
            env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path)},
        )
        for how in ("compiled", "interpreted")
    ]
    compiled, interpreted = (json.loads(one.communicate()[0]) for one in running)
    assert interpreted == compiled
    assert {True, False} == set(compiled.values())
