"""`wavedeck apply --overlay`: one file in a Python's packages, the package itself untouched, and away again by one command."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import venv
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from sessions import Home
from sessions.applying import before_after
from tests.support.command_line import Done, Shell, one_line
from tests.support.sessions import stored_sessions as stored
from tests.support.tasks.kernel_repositories import ORIGINAL, TASK, WINNER, add_task
from tui.diagnostics import ExitCode

SHOW = "import inspect, ops.add; print(inspect.getsource(ops.add.vector_add), ops.add.__file__, dir(ops.add))"
FAKES = {
    "torch.py": "Tensor = object\n",
    "triton/__init__.py": "def jit(function):\n    return function\n",
    "triton/language.py": "constexpr = int\n",
}


@pytest.fixture
def packages(home: Home, shell: Shell, tmp_path: Path) -> Path:
    """Returns the packages of a Python of its own, with the kernel's package; an attempt solved its task."""
    add_task(shell, tmp_path / "mine")
    stored.solved(home, {TASK: WINNER})
    venv.create(tmp_path / "env", symlinks=True)
    folder = next((tmp_path / "env/lib").glob("python3*")) / "site-packages"
    for name, text in FAKES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def install(folder: Path, text: str = ORIGINAL) -> Path:
    """Write the kernel's package into a folder; return the kernel's file."""
    (folder / "ops").mkdir(parents=True, exist_ok=True)
    (folder / "ops/__init__.py").write_text("raise_if_imported = 1\n")
    (folder / "ops/add.py").write_text(text)
    return folder / "ops/add.py"


def python(packages: Path) -> Path:
    return packages.parents[2] / "bin/python"


def show(packages: Path) -> subprocess.CompletedProcess[str]:
    """Return what the Python says of the kernel."""
    return subprocess.run(
        [python(packages), "-c", SHOW], capture_output=True, text=True, check=False, cwd=packages
    )


def overlay(shell: Shell, packages: Path, *options: str) -> Done:
    return shell(
        "apply", "mine/vector_add#1/1", "--overlay", str(python(packages)), "--file", "ops/add.py", *options
    )


def state(folder: Path) -> dict[str, str]:
    """Return the hash of each file of a folder, without compiled ones."""
    return {
        str(file): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }


@pytest.mark.parametrize("form", ["plain", "zip", "editable"])
def test_new_kernel_runs_for_the_installed_one_until_it_is_removed(
    shell: Shell, packages: Path, tmp_path: Path, form: str
) -> None:
    if form == "plain":
        file = install(packages)
    else:
        file = install(tmp_path / "source")
        place = tmp_path / "source"
        if form == "zip":
            place = tmp_path / "ops.zip"
            with zipfile.ZipFile(place, "w") as archive:
                for name in ("ops/__init__.py", "ops/add.py"):
                    archive.write(tmp_path / "source" / name, name)
            file = place / "ops/add.py"
        (packages / "__editable__.ops.pth").write_text(f"{place}\n")
    before = state(tmp_path)
    done = overlay(shell, packages)
    assert done.code == ExitCode.DONE, done.err
    added = {Path(name).name for name in state(tmp_path).keys() - before.keys() if str(packages) in name}
    assert added == {"wavedeck_overlay_ops.add.pth", "wavedeck_overlay_ops.add.py"}
    assert str(python(packages)) in done.out
    shown = show(packages)
    assert "fast_kernel" in shown.stdout, shown.stderr
    assert str(file) in shown.stdout
    assert "add_twice" in shown.stdout
    assert "exists already" in one_line(overlay(shell, packages)) or "already" in one_line(
        overlay(shell, packages)
    )
    removed = shell("apply", "--overlay", str(python(packages)), "--remove")
    assert removed.code == ExitCode.DONE
    assert "old_kernel" in show(packages).stdout
    assert {name: mark for name, mark in state(tmp_path).items() if name in before} == before
    assert "has no overlay" in one_line(shell("apply", "--overlay", str(python(packages)), "--remove"))


def test_changed_module_is_refused_and_an_upgrade_runs_without_the_overlay(
    shell: Shell, packages: Path
) -> None:
    file = install(packages, ORIGINAL.replace("x + y", "x + y + 0"))
    changed = overlay(shell, packages)
    assert changed.code == ExitCode.USAGE
    assert "the file changed since the task was made" in one_line(changed)
    assert not list(packages.glob("wavedeck*"))
    install(packages)
    assert overlay(shell, packages).code == ExitCode.DONE
    file.write_text(f"{ORIGINAL}\nMORE = 1\n")
    shown = show(packages)
    assert shown.returncode == 0
    assert "old_kernel" in shown.stdout
    assert "ops.add changed since its overlay was made" in shown.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--overlay", "no-such-python"), "no such program"),
        (("--overlay", "/bin/true"), "/bin/true does not work as a Python"),
        (("--overlay", "/bin/false"), "/bin/false does not work as a Python"),
        (("--overlay", "x", "--to", "y"), "name the repository with --to REPO, or a Python"),
        ((), "name the repository with --to REPO, or a Python"),
        (("--to", ".", "--remove"), "--remove needs --overlay"),
    ],
)
def test_what_is_no_python_is_refused_in_one_line(
    shell: Shell, packages: Path, options: tuple[str, ...], words: str
) -> None:
    done = shell("apply", "mine/vector_add#1/1", *options)
    assert done.code == ExitCode.USAGE
    assert words in one_line(done)


def test_module_that_is_missing_or_compiled_is_refused(shell: Shell, packages: Path) -> None:
    assert "has no module ops.add with Python source" in one_line(overlay(shell, packages))
    (packages / "ops").mkdir()
    (packages / f"ops/add{EXTENSION_SUFFIXES[0]}").write_bytes(b"")
    assert "has no module ops.add with Python source" in one_line(overlay(shell, packages))
    named = shell("apply", "mine/vector_add#1/1", "--overlay", str(python(packages)))
    assert "name its module with --file PACKAGE/MODULE.py" in one_line(named)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ('exec {python} -S "$@"', ExitCode.USAGE),
        (
            'ls {packages} | grep -q overlay && kill -INT $PPID && sleep 600; exec {python} "$@"',
            ExitCode.INTERRUPTED,
        ),
        ('ls {packages} | grep -q overlay && exit 1; exec {python} "$@"', ExitCode.USAGE),
    ],
    ids=["reads no .pth files", "interrupted", "fails afterwards"],
)
def test_overlay_that_does_not_load_leaves_nothing(
    shell: Shell, packages: Path, tmp_path: Path, script: str, code: ExitCode
) -> None:
    install(packages)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f"#!/bin/sh\n{script.format(python=python(packages), packages=packages)}\n")
    wrapper.chmod(0o755)
    before = state(packages)
    done = shell("apply", "mine/vector_add#1/1", "--overlay", str(wrapper), "--file", "ops/add.py")
    assert done.code == code, done.err
    assert state(packages) == before


def test_read_only_packages_are_refused(
    shell: Shell, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(packages)
    monkeypatch.setattr("sessions.applying.overlay.os.access", lambda _, mode: mode != os.W_OK)
    assert f"has read-only packages, {packages}" in one_line(overlay(shell, packages))


def test_benchmark_tries_the_overlay_in_its_own_processes_first(
    shell: Shell, packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(before_after, "PAIRS", 2)
    install(packages)
    seen = tmp_path / "seen"
    look = (
        "import inspect, ops.add; print('fast_kernel' in inspect.getsource(ops.add.vector_add), "
        f"file=open({str(seen)!r}, 'a')); print(1)"
    )
    unlaunched = overlay(shell, packages, "--e2e", shlex.join([str(python(packages)), "-c", look]))
    assert unlaunched.code == ExitCode.NO
    assert seen.read_text().split() == ["False", "True"]
    assert "never loaded: no process of the command loaded a kernel" in unlaunched.err
    assert not list(packages.glob("wavedeck*"))
    done = overlay(shell, packages, "--e2e", "echo 1")
    assert done.code == ExitCode.DONE, done.err
    assert "not known: no Python of the command reported" in done.out
    assert list(packages.glob("wavedeck*"))
