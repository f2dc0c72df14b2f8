"""The interpreter of the judge's processes: Wavedeck's own, or a person's, with its own torch and Triton."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.linux import worker_start
from harness.linux.process_environment import worker_environment
from harness.wire.errors import BadPython, JudgeExtraMissing

OLDEST_PYTHON, OLDEST_TRITON = (3, 10), (3, 5)
_START_S = 60.0
_WHICH = (
    "import sys, sysconfig; "
    "sys.stdout.write('%d.%d.%d %s' % (sys.version_info[:3] + (sysconfig.get_config_var('SOABI'),)))"
)
"""Prints the version and the binary interface; also in interpreters that the judge cannot use."""


class JudgePython(msgspec.Struct, frozen=True):
    """An interpreter that can run the judge."""

    path: str = sys.executable
    folders: tuple[str, ...] = ()
    """Folders with packages that the judge needs and the interpreter lacks."""
    versions: dict[str, str] = {}
    """Versions of Python, torch and triton; empty for Wavedeck's own interpreter."""

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the judge's processes."""
        shared = worker_environment(interpret=False)
        return shared | ({worker_start.PACKAGES: os.pathsep.join(self.folders)} if self.folders else {})

    def require_judge(self) -> None:
        """Raise `JudgeExtraMissing` if torch or triton is not installed. A person's interpreter was checked when it was found."""
        for package in ("torch", "triton"):
            if self.path == sys.executable and importlib.util.find_spec(package) is None:
                raise JudgeExtraMissing(
                    f"{package} is not installed, so nothing can be judged; pip install 'wavedeck[judge]', "
                    "or name a Python that has it with --python"
                )


OUR_PYTHON = JudgePython()


class _Installed(msgspec.Struct, frozen=True):
    versions: dict[str, str]
    broken: dict[str, str]


def find_python(path: str, packages: Path) -> JudgePython:
    """Return a person's interpreter, checked; `OUR_PYTHON` for an empty path. Blocks for about a second.

    Packages that it lacks come from Wavedeck's environment, if that has the same binary interface, and from a folder of
    `packages`. Raises `BadPython` if it cannot judge; nothing is written.
    """
    if not path:
        return OUR_PYTHON
    place = Path(path).expanduser()
    program = shutil.which(place.absolute()) or shutil.which(place)
    if program is None:
        raise BadPython(
            f"--python {path}: no such program; give the path of a Python, such as .venv/bin/python"
        )
    # Not resolved: a virtual environment is found by the place of its link.
    python = str(Path(program).absolute())
    number, _, interface = _output([python, "-c", _WHICH], path, OUR_PYTHON.environment).partition(" ")
    major_minor = number.rpartition(".")[0]
    if not all(part.isdecimal() for part in number.split(".")) or "." not in number:
        raise BadPython(f"--python {path}: this program is no Python")
    if _numbers(number) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise BadPython(f"--python {path}: the judge needs Python {oldest} or newer, and this is {number}")
    extra = packages / f"python{major_minor}"
    same = interface == sysconfig.get_config_var("SOABI")
    interpreter = JudgePython(python, (*(_own_folders() if same else ()), str(extra)))
    reported = _output(worker_start.command(python=python), path, interpreter.environment)
    try:
        installed = msgspec.json.decode(reported, type=_Installed)
    except msgspec.DecodeError as error:
        raise BadPython(f"--python {path}: it does not run Wavedeck's start script ({error})") from error
    _check(path, installed, python, extra)
    return msgspec.structs.replace(interpreter, versions={"python": number} | installed.versions)


def _own_folders() -> list[str]:
    """The folders that have the needed packages here: with a system's packages there are several."""
    specs = map(importlib.util.find_spec, worker_start.NEEDED)
    places = [Path(spec.origin).parents[1] for spec in specs if spec is not None and spec.origin]
    return list(dict.fromkeys(map(str, places)))


def _check(path: str, installed: _Installed, python: str, extra: Path) -> None:
    """Raise `BadPython`, with the remedy, if an interpreter lacks a module or has an old Triton.

    `python` is its path, `path` the person's words for it; missing modules can be installed into `extra`.
    """
    lacks = [name for name in ("torch", "triton") if name not in installed.versions]
    if lacks:
        raise BadPython(
            f"--python {path}: {' and '.join(lacks)} not installed there; a judge needs torch and triton"
        )
    triton = installed.versions["triton"]
    if triton and _numbers(triton) < OLDEST_TRITON:
        oldest = ".".join(map(str, OLDEST_TRITON))
        raise BadPython(f"--python {path}: the judge needs Triton {oldest} or newer, and this is {triton}")
    for name, why in installed.broken.items():
        if why:
            raise BadPython(f"--python {path}: {name} does not import there: {why}")
    if installed.broken:
        wanted = _requirements([worker_start.NEEDED[name] for name in installed.broken])
        command = ["pip", "--python", python, "install", "--no-deps", "--target", str(extra), *wanted]
        raise BadPython(
            f"--python {path}: the judge needs {', '.join(installed.broken)} too; this puts them into a folder of Wavedeck's, "
            f"not into that environment: {shlex.join(command)}"
        )


def _output(command: Sequence[str], path: str, environment: dict[str, str]) -> str:
    """Run a person's interpreter and return what it prints. Raises `BadPython` if it does not start, hangs or fails."""
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, errors="replace", check=False,
            stdin=subprocess.DEVNULL, timeout=_START_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadPython(f"--python {path}: it does not start ({error})") from error
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2][:100] or f"exit code {done.returncode}"
        raise BadPython(f"--python {path}: it is no Python, or does not start ({last})")
    return done.stdout


def _numbers(version: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


def _requirements(distributions: Sequence[str]) -> list[str]:
    """The versions of these distributions that Wavedeck asks for."""
    try:
        requirements = importlib.metadata.requires("wavedeck") or []
    except importlib.metadata.PackageNotFoundError:
        requirements = []
    wanted = [requirement.partition(";")[0].strip() for requirement in requirements]
    return [
        next((text for text in wanted if text.startswith(distribution)), distribution)
        for distribution in distributions
    ]
