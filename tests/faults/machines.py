"""Machines that lack something a sandbox is built of, made from this one."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import site
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.worker.sandbox import identity, landlock
from tests.faults.planting import PROJECT

PERSON = 12345
"""A user id that nobody has here."""


class Machine(NamedTuple):
    """What judging on it came to."""

    verdicts: list[str]
    errors: list[str]
    layers: dict[str, tuple[str, str]]
    """Of a guest: state and why, by name."""
    compiler_layers: dict[str, tuple[str, str]]
    seen: dict[str, dict[str, str]]
    """Ways in which the key was seen, by who hunted."""
    tried: dict[str, list[str]]

    def states(self, *names: str) -> list[str]:
        """Of these layers, in order."""
        return [self.layers[name][0] for name in names]


async def machine(**options: Any) -> Machine:
    """Judges, and hunts, on a machine that is as `tests.faults.planting.Options` say."""
    folder = _open_folder()
    try:
        return await _machine(folder, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _open_folder() -> Path:
    """A folder that others can pass: those of pytest are closed to them."""
    folder = Path(tempfile.mkdtemp(prefix="wd-machine-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


async def _machine(folder: Path, options: dict[str, Any]) -> Machine:
    python = sys.executable
    if options.get("uid") is not None:
        python = python_for_others(folder)
    place = folder / "machine"
    place.mkdir(mode=0o755)
    process = await asyncio.create_subprocess_exec(
        *(python, "-m", "tests.faults.planting", str(place), json.dumps({"hunt": False, **options})),
        cwd=PROJECT,
        env={**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    printed, said = await process.communicate()
    assert printed, said.decode()[-3000:]
    answer = json.loads(printed)
    return Machine(
        verdicts=answer["verdicts"],
        errors=answer["errors"],
        layers=answer["layers"],
        compiler_layers=answer.get("compiler_layers", {}),
        seen=answer["seen"],
        tried=answer["tried"],
    )


def python_for_others(folder: Path) -> str:
    """An interpreter that another user can run, with the same packages."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if identity.unreadable([*landlock.python_folders(), Path(sys.executable)]) is None:
        return sys.executable
    packages = [one for one in site.getsitepackages() if identity.unreadable([Path(one)]) is None]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = shutil.which(version, path="/usr/bin:/usr/local/bin")
    if found is None or not packages or identity.unreadable([PROJECT]) is not None:
        pytest.skip(f"other users cannot read this Python, and there is no {version} that they can")
    made = folder / "python"
    subprocess.run([found, "-m", "venv", "--without-pip", str(made)], check=True)
    (made / "lib" / version / "site-packages" / "ours.pth").write_text("\n".join(packages))
    subprocess.run(["chmod", "-R", "a+rX", str(made)], check=True)
    return str(made / "bin" / "python")
