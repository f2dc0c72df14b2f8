"""Make `.venv`, with the vendor's torch and triton if the system's Python has them. Standard library only.

A ROCm or CUDA build of torch with a triton is reused: the environment sees it. Constraints pin every distribution that it
needs to the installed version, so that nothing of the vendor's is shadowed. Otherwise the pinned builds are installed.
You can run it again at any time: it does nothing while `pyproject.toml` and the Python stay the same.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)
TORCH = "torch==2.13.0"
TRITON = "triton==3.7.1"
CONSTRAINTS = "vendor-constraints.txt"

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


def pip(venv: Path, *arguments: str) -> None:
    """Run pip of the environment; if it fails, its own output is the explanation."""
    expect_success(subprocess.Popen(pip_command(venv, *arguments), cwd=ROOT))


def pip_command(venv: Path, *arguments: str) -> list[str]:
    """Return the command that installs into the environment."""
    options = ["--disable-pip-version-check", "install", "--quiet", "--no-compile"]
    return [str(venv / "bin/python"), "-m", "pip", *options, *arguments]


def expect_success(installing: subprocess.Popen[bytes]) -> None:
    """Wait for pip and fail with its command if it fails."""
    if installing.wait() != 0:
        command = " ".join(map(str, list(installing.args)[3:]))  # type: ignore[arg-type]
        fail(f"pip could not run `{command}`; fix the problem shown above and run `make setup` again")


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


def install(venv: Path, system: dict[str, Any]) -> None:
    """Install Wavedeck with its dependencies into the environment, and compile it to byte code."""
    if system["backend"]:
        pip(venv, "-c", str(venv / CONSTRAINTS), "-e", ".[dev]", *judge_requirements(with_torch=False))
        check_not_shadowed(venv)
    else:
        # pip uses one core, and torch is half of all bytes: two processes install. What torch itself needs comes last.
        torch = subprocess.Popen(pip_command(venv, "--no-deps", TORCH, TRITON), cwd=ROOT)
        pip(venv, "--no-warn-conflicts", "-e", ".[dev]", *judge_requirements(with_torch=False))
        expect_success(torch)
        compiling = subprocess.Popen(compile_command(venv), cwd=ROOT)
        pip(venv, TORCH, TRITON)
        compiling.wait()
    subprocess.run(compile_command(venv), cwd=ROOT, check=False)


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
    make_environment(venv, system)
    install(venv, system)
    stamp.write_text(current)


if __name__ == "__main__":
    main()
