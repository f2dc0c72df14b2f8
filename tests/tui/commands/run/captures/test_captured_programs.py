"""`wavedeck capture` changes nothing that a program does: its output and exit code are those of a plain run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from suites.captures.program import OpenCapture
from suites.errors import BadCapture
from tests.support.command_line import Shell
from tests.support.draws import drawn

HERE = Path(__file__).parent
PROGRAMS = tomllib.loads((HERE / "captured_programs.toml").read_text(encoding="utf-8"))
TORCH_PROGRAMS = tomllib.loads((HERE / "captured_torch_programs.toml").read_text(encoding="utf-8"))
USER = "from ops import *\ndef late():\n    import ops\n    return ops.add(2)\n"
"""A module that imports `ops`, which imports this module."""


def run_program(program: Mapping[str, Any], folder: Path, environ: Mapping[str, str]) -> tuple[int, str, str]:
    """Run the program in a folder of its own; return its exit code, output and errors, with `.` for the folder."""
    folder.mkdir(exist_ok=True)
    file = program.get("file", "bench.py")
    for name, text in {"ops.py": program.get("ops", ""), file: program["script"], "user.py": USER}.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = [sys.executable, *program.get("command", [file])]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, timeout=240, check=False)
    out, err = (
        re.sub("0x[0-9a-f]+", "0x", stream.decode(errors="replace").replace(str(folder), "."))
        for stream in (done.stdout, done.stderr)
    )
    return done.returncode, out, err


def plain_environment() -> dict[str, str]:
    """Return the environment of a program that nobody records."""
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    environ.pop("PYTHONPATH", None)
    return environ


def compare(program: Mapping[str, Any], folder: Path) -> None:
    """Run the program with and without a capture, and compare."""
    environ = plain_environment()
    plain = run_program(program, folder / "plain", environ)
    recording = OpenCapture(program["target"], folder / "calls")
    assert run_program(program, folder / "under", recording.environment(environ)) == plain
    try:
        calls = sum(process.calls for process in recording.finish([], plain[0], 0.0).processes)
    except BadCapture:
        calls = 0
    if "calls" in program:
        assert calls == program["calls"]


@pytest.mark.parametrize("name", drawn(sorted(PROGRAMS), 5))
def test_program_does_the_same_under_a_capture(name: str, tmp_path: Path) -> None:
    compare(PROGRAMS[name], tmp_path)


@pytest.mark.judge
@pytest.mark.soak
@pytest.mark.parametrize("name", sorted(TORCH_PROGRAMS))
def test_program_with_torch_does_the_same_under_a_capture(name: str, tmp_path: Path) -> None:
    compare(TORCH_PROGRAMS[name], tmp_path)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("shutil.rmtree(parts)", "the program deleted"),
        ("open(os.path.join(parts, 'part-0.json'), 'w').write('{')", "1 signature, 1 call"),
        ("os.mkdir(parts[:-6])", "cannot be written: Is a directory"),
    ],
)
def test_lost_capture_is_a_line_and_the_exit_code_stays(
    shell: Shell, tmp_path: Path, script: str, words: str
) -> None:
    (tmp_path / "ops.py").write_text("def add(x):\n    return x\n", encoding="utf-8")
    bench = tmp_path / "bench.py"
    bench.write_text(
        f"import ops, os, shutil, sys\nops.add('\\ud800')\nparts = {str(tmp_path / 'calls.parts')!r}\n{script}\n"
        "sys.exit(7)\n",
        encoding="utf-8",
    )
    out = tmp_path / "calls"
    done = shell("capture", "ops:add", "-o", str(out), "--", sys.executable, str(bench))
    assert done.code == 7
    assert words in done.err
    assert not (tmp_path / "calls.parts").exists()
