"""The interpreter that `--python` names: what it may lack, and what it gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.processes.starting.judge_python import find_python
from harness.wire.errors import BadPython


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The interpreter of an environment without packages."""
    folder = tmp_path / "theirs"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"


def packages_of(python: Path) -> Path:
    return next(python.parent.parent.glob("lib/python*/site-packages"))


def install(python: Path, **versions: str) -> None:
    for name, version in versions.items():
        (packages_of(python) / name).mkdir(exist_ok=True)
        (packages_of(python) / name / "__init__.py").touch()
        information = packages_of(python) / f"{name}.dist-info"
        information.mkdir(exist_ok=True)
        (information / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (information / "top_level.txt").write_text(name)


def program(file: Path, *lines: str) -> str:
    file.write_text("\n".join(("#!/bin/sh", *lines, "")))
    file.chmod(0o755)
    return str(file)


def refusal(path: str | Path, folder: Path) -> str:
    with pytest.raises(BadPython) as caught:
        find_python(str(path), folder / "packages")
    assert not (folder / "packages").exists()
    return str(caught.value)


def test_program_that_is_no_python_or_too_old_is_refused(tmp_path: Path) -> None:
    assert "no such program" in refusal(tmp_path / "nosuch", tmp_path)
    assert "no Python" in refusal(program(tmp_path / "hello", "echo hello"), tmp_path)
    assert "no Python" in refusal(program(tmp_path / "fails", "exit 5"), tmp_path)
    old = program(tmp_path / "old", "printf '3.9.2 cpython-39'")
    assert "needs Python 3.10 or newer, and this is 3.9.2" in refusal(old, tmp_path)


def test_torch_and_triton_are_never_those_of_wavedeck(python: Path, tmp_path: Path) -> None:
    assert "torch and triton not installed there" in refusal(python, tmp_path)
    install(python, torch="2.8.0", triton="3.4.0")
    assert "needs Triton 3.5 or newer, and this is 3.4.0" in refusal(python, tmp_path)


@pytest.mark.judge
def test_packages_that_the_judge_needs_besides_are_lent(python: Path, tmp_path: Path) -> None:
    install(python, torch="2.9.0+rocm7.0", triton="3.7.1")
    interpreter = find_python(str(python), tmp_path / "packages")
    assert interpreter.path == str(python)  # the link in the environment, not the interpreter behind it
    assert (interpreter.versions["torch"], interpreter.versions["triton"]) == ("2.9.0+rocm7.0", "3.7.1")
    assert {path.name for path in packages_of(python).iterdir()} == {
        *("torch", "torch.dist-info", "triton", "triton.dist-info")
    }


def test_another_version_of_python_names_the_command_that_fetches_packages(
    python: Path, tmp_path: Path
) -> None:
    install(python, torch="2.9.0", triton="3.7.1")
    another = f'if [ "$1" = -c ]; then printf "3.99.1 cpython-399"; else exec {python} "$@"; fi'
    words = refusal(program(tmp_path / "another", another), tmp_path)
    target = tmp_path / "packages" / "python3.99"
    assert "needs msgspec, numpy, ml_dtypes, elftools too" in words
    assert f"--target {target} msgspec==" in words
