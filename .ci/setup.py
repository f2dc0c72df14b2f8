"""Make `.venv`, with the vendor's torch and triton if the system's Python has them. Standard library only.

A ROCm or CUDA build of torch with a triton is reused: the environment sees it. Constraints pin every distribution that it
needs to the installed version, so that nothing of the vendor's is shadowed. Otherwise the pinned builds are installed: by uv
if it is there and pip has no settings that uv does not read, else by pip.
You can run it again at any time: it does nothing while `pyproject.toml` and the Python stay the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
TORCH = "torch==2.13.0"
TRITON = "triton==3.7.1"
CONSTRAINTS = "vendor-constraints.txt"
STEPS = 3
"""Environment, packages, byte code."""
QUIET_S = 30.0
"""Seconds between two lines where no terminal shows one that is rewritten."""
HARMLESS = frozenset(
    {
        "cache-dir",
        "default-timeout",
        "disable-pip-version-check",
        "no-color",
        "no-input",
        "progress-bar",
        "retries",
        "root-user-action",
        "timeout",
    }
)
"""Settings of pip that do not change what is installed, nor from where."""

# Runs in the system's Python and prints the kind of its torch, and the closure of the requirements of torch and triton.
INSPECT = r"""
import importlib.metadata as md, importlib.util as iu, json, re, sys, sysconfig
found = {"prefix": sys.prefix, "base_prefix": sys.base_prefix, "paths": [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")],
         "backend": None, "closure": {}}
if iu.find_spec("torch") and iu.find_spec("triton"):
    import torch
    found["backend"] = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else None
    normal = lambda name: re.sub(r"[-_.]+", "-", name).lower()
    installed = {normal(d.metadata["Name"]): d for d in md.distributions() if d.metadata["Name"]}
    owners = md.packages_distributions()
    todo = [normal(n) for module in ("torch", "triton", "numpy") for n in owners.get(module, ())]
    while todo:
        name = todo.pop()
        if name in found["closure"] or name not in installed:
            continue
        found["closure"][name] = installed[name].version
        for requirement in installed[name].requires or ():
            if "extra ==" not in requirement:
                todo.append(normal(re.match(r"[A-Za-z0-9._-]+", requirement).group()))
print(json.dumps(found))
"""


class Progress:
    """Says the running step, its package, and the time since the beginning.

    On a terminal one line is rewritten each second. Elsewhere a line is printed for each step and every half minute.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._rewrites = sys.stdout.isatty() and os.environ.get("TERM", "") != "dumb"
        self._step, self._words, self._now, self._printed = 0, "", "", 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def step(self, words: str) -> None:
        """Begin the next step; the first one starts the thread that shows it."""
        if not self._step:
            self._thread.start()
        self._step, self._words, self._now, self._printed = self._step + 1, words, "", 0.0
        self._show()

    def note(self, words: str) -> None:
        """Show what the step does now."""
        self._now = words

    def end(self) -> None:
        """Take the line away."""
        self._ended.set()
        if self._step:
            self._thread.join()
        self.erase()

    def erase(self) -> None:
        """Take the line away until the next second."""
        if self._rewrites:
            print("\r\x1b[K", end="", flush=True)

    @property
    def clock(self) -> str:
        """Minutes and seconds since the beginning."""
        seconds = int(time.monotonic() - self._began)
        return f"{seconds // 60}:{seconds % 60:02}"

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self._show()

    def _show(self) -> None:
        now = f": {self._now}" if self._now else ""
        text = f"setup: step {self._step} of {STEPS}, {self._words}{now}, {self.clock}"
        if self._rewrites:
            print(f"\r\x1b[K{text[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif time.monotonic() - self._printed >= QUIET_S:
            self._printed = time.monotonic()
            print(text, flush=True)


def fail(message: str) -> NoReturn:
    """End with one line: the problem and the next step."""
    sys.exit(f"setup: {message}")


def inspect_system() -> dict[str, Any]:
    """Return the torch and triton of the system's Python; a broken torch counts as none."""
    done = subprocess.run([sys.executable, "-c", INSPECT], capture_output=True, text=True, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode != 0 or not lines:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        print(f"setup: the system's torch does not import ({reason}); installing {TORCH} instead")
        return {"backend": None, "closure": {}}
    system: dict[str, Any] = json.loads(lines[-1])
    return system


def judge_requirements(*, with_torch: bool) -> list[str]:
    """Return the extra `judge` of `pyproject.toml`; without torch and triton if the vendor's are used."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    return [r for r in extras["judge"] if with_torch or r not in ("torch", "triton")]


class Installing:
    """A running installer; `progress` shows which package it is about."""

    def __init__(self, command: list[str], progress: Progress) -> None:
        self.command = command
        self._progress = progress
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.append(line)
                if words := package_words(line):
                    self._progress.note(words)

    def succeeds(self) -> bool:
        """Wait for the end. If it failed, print its last lines: its own output is the explanation."""
        self._reader.join()
        if self._process.wait() == 0:
            return True
        self._progress.erase()
        sys.stderr.write("".join(self._lines[-40:]))
        return False

    def expect_success(self) -> None:
        """Wait for the end, and fail with the command if it failed."""
        if not self.succeeds():
            command = " ".join(self.command[3:])
            fail(f"pip could not run `{command}`; fix the problem shown above and run `make setup` again")


def package_words(line: str) -> str:
    """Return what a line of an installer's output is about; empty if it names no package."""
    if match := re.match(r"\s*(?:Downloading|Using cached) (\S+)(?: \(([^)]*)\))?", line):
        name = (
            match[1].rpartition("/")[2].partition("-py3-")[0].partition("-cp3")[0].removesuffix(".metadata")
        )
        return f"{name} ({match[2]})" if match[2] else name
    if match := re.match(r"\s*Collecting (\S+)", line):
        return match[1]
    if match := re.match(r"Installing collected packages: (.*)", line):
        return f"writing {match[1].count(',') + 1} packages"
    return ""


def pip_command(venv: Path, *arguments: str) -> list[str]:
    """Return the command that installs into the environment."""
    options = ["--disable-pip-version-check", "install", "--progress-bar", "off", "--no-compile"]
    return [str(venv / "bin/python"), "-m", "pip", *options, *arguments]


def usable_uv(venv: Path) -> str:
    """Return the path of uv; empty if there is none that runs, or if pip has settings that uv does not read."""
    uv = shutil.which("uv") or ""
    try:
        if not uv or subprocess.run([uv, "--version"], capture_output=True, check=False).returncode != 0:
            return ""
    except OSError:
        return ""
    python = str(venv / "bin/python")
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    return "" if listed.returncode != 0 or settings_for_pip_alone(listed.stdout) else uv


def settings_for_pip_alone(listed: str) -> set[str]:
    """Return the settings in the output of `pip config list` that change what is installed, or from where."""
    names = {line.partition("=")[0].rpartition(".")[2] for line in listed.splitlines() if "=" in line}
    return names - HARMLESS


def make_environment(venv: Path, system: dict[str, Any]) -> None:
    """Make an empty environment. With the vendor's packages, it sees them and gets their versions as constraints."""
    seen = ["--system-site-packages"] if system["backend"] else []
    if (
        subprocess.run([sys.executable, "-m", "venv", "--clear", *seen, str(venv)], check=False).returncode
        != 0
    ):
        fail("venv failed; install your system's python3-venv package and run `make setup` again")
    if not system["backend"]:
        return
    if system["prefix"] != system["base_prefix"]:
        # The vendor's Python is a virtual environment too, and a virtual environment does not see another.
        site = next(venv.glob("lib/python*/site-packages"))
        (site / "vendor-torch.pth").write_text("\n".join(dict.fromkeys(system["paths"])) + "\n")
    pins = sorted(system["closure"].items())
    (venv / CONSTRAINTS).write_text("".join(f"{name}=={version}\n" for name, version in pins))


def check_not_shadowed(venv: Path) -> None:
    """Fail if the environment has its own torch or triton besides the vendor's."""
    where = "import torch, triton; print(torch.__file__, triton.__file__)"
    done = subprocess.run(
        [str(venv / "bin/python"), "-c", where], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or str(venv.resolve()) in done.stdout:
        why = done.stdout.strip() or (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        fail(f"the vendor's torch or triton was shadowed ({why}); remove {venv} and report this")


def install(venv: Path, system: dict[str, Any], progress: Progress) -> None:
    """Install Wavedeck with its dependencies into the environment, and compile it to byte code."""
    progress.step("packages")
    ours = ["-e", ".[dev,mcp,reports]", *judge_requirements(with_torch=False)]
    compiling = None
    if system["backend"]:
        Installing(pip_command(venv, "-c", str(venv / CONSTRAINTS), *ours), progress).expect_success()
        check_not_shadowed(venv)
    elif uv_installs(venv, ours, progress):
        pass
    else:
        # pip uses one core, and torch is half of all bytes: two processes install. What torch itself needs comes last.
        torch = Installing(pip_command(venv, "--no-deps", TORCH, TRITON), progress)
        Installing(pip_command(venv, "--no-warn-conflicts", *ours), progress).expect_success()
        torch.expect_success()
        compiling = subprocess.Popen(compile_command(venv), cwd=ROOT)
        Installing(pip_command(venv, TORCH, TRITON), progress).expect_success()
    progress.step("byte code")
    if compiling is not None:
        compiling.wait()
    subprocess.run(compile_command(venv), cwd=ROOT, check=False)


def uv_installs(venv: Path, ours: list[str], progress: Progress) -> bool:
    """Install with uv; False if it is not usable, or if it fails: then pip installs."""
    uv = usable_uv(venv)
    command = [uv, "pip", "install", "--python", str(venv / "bin/python"), *ours, TORCH, TRITON]
    if not uv or Installing(command, progress).succeeds():
        return bool(uv)
    print("setup: uv could not install, as shown above; pip installs", flush=True)
    return False


def compile_command(venv: Path) -> list[str]:
    """Return the command that compiles installed files to byte code on all cores.

    It leaves out what no process of Wavedeck imports, and skips unreadable files.
    """
    packages = str(next(venv.glob("lib/python*/site-packages")))
    unused = r"/site-packages/(pip|setuptools|mypy|mypyc|torch/testing/_internal|.*/tests)/"
    return [str(venv / "bin/python"), "-m", "compileall", "-qq", "-j", "0", "-x", unused, packages]


def main() -> None:
    """Make the environment unless it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    venv: Path = parser.parse_args().venv
    if sys.version_info < OLDEST:
        fail(
            f"Python {sys.version.split()[0]} is too old; run `make setup PYTHON=/path/to/python3.11` or newer"
        )
    stamp = venv / "wavedeck-setup"
    inputs = [
        (ROOT / "pyproject.toml").read_bytes(),
        Path(__file__).read_bytes(),
        f"{sys.executable} {sys.version}".encode(),
    ]
    current = hashlib.sha256(b"\0".join(inputs)).hexdigest()
    if stamp.exists() and stamp.read_text() == current:
        return
    system = inspect_system()
    action = (
        f"reusing the system's torch {system['closure']['torch']} ({system['backend']})"
        if system["backend"]
        else f"installing {TORCH} {TRITON}"
    )
    print(f"setup: making {os.path.relpath(venv)} with Python {sys.version.split()[0]}, {action}", flush=True)
    progress = Progress()
    try:
        progress.step("environment")
        make_environment(venv, system)
        install(venv, system, progress)
    finally:
        progress.end()
    stamp.write_text(current)
    print(f"setup: done in {progress.clock}")


if __name__ == "__main__":
    main()
