"""Section of doctor about agents that are not Wavedeck's own: which are installed, and what confines them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from engine.agent_programs import guard
from engine.agent_programs.presets import PRESETS, AgentProgram
from harness.linux.installed import installed_version
from harness.sandbox import landlock

from .doctor_findings import DoctorFinding, note, ok, warning

LIMIT_S = 30.0
"""For each command of an agent."""
VERSION_OPTIONS = {"mini": "--help"}
"""Options that print the version, where it is not `--version`."""


def agents(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield what confines agents, and the versions of the MCP SDK and of each agent on the path."""
    yield confinement()
    sdk = installed_version("mcp")
    if sdk:
        yield ok("mcp", sdk, "wavedeck mcp serves the judge to agents: docs/agents.md")
    else:
        yield note("mcp", "not installed", "wavedeck mcp needs it: pip install 'wavedeck[mcp]'")
    with ThreadPoolExecutor() as pool:
        yield from pool.map(partial(finding, environ), PRESETS.values())


def confinement() -> DoctorFinding:
    """Return what confines agents here: an agent is started that only tries to read the environment of the shell."""
    folder = tempfile.gettempdir()
    confined = guard.Confinement(engine=os.getpid(), folder=folder, write=(), hidden=(), shared=folder)
    command = [sys.executable, "-P", "-m", guard.__name__, msgspec.json.encode(confined).decode()]
    done = run([*command, "cat", f"/proc/{os.getppid()}/environ"], dict(os.environ), Path.cwd())
    if done.returncode == 0:
        words = "agents can read the memory and the environment of your shell"
        return warning("confinement", words, "export no key there; write it before the command that needs it")
    if done.returncode != 1:
        return warning("confinement", f"could not be tried: {done.stderr.strip()[-100:]}")
    words = "agents read no memory and no environment of your other programs"
    if not landlock.version():
        return warning("confinement", words, "without Landlock they can read this home and your files")
    return ok("confinement", f"Landlock; {words}")


def finding(environ: Mapping[str, str], preset: AgentProgram) -> DoctorFinding:
    """Return an agent's version, and how it sends kernels."""
    name, program = preset.name, preset.command[0]
    path = shutil.which(program, path=environ.get("PATH"))
    if path is None:
        return note(name, f"no {program} on the path")
    option = VERSION_OPTIONS.get(program, "--version")
    try:
        done = run([path, option], dict(environ), Path.cwd())
        done.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        return warning(name, f"no version: {cause(error)}", f"start it once by hand: {path} {option}")
    version = done.stdout.strip().partition("\n")[0]
    way = "MCP" if preset.has_mcp else "wavedeck mcp call eval, without MCP"
    return ok(name, f"{version}; sends kernels by {way}", f"{path}; wavedeck run --agent {name}")


def cause(error: Exception) -> str:
    """Return why a command of an agent gave no answer."""
    is_late = isinstance(error, subprocess.TimeoutExpired)
    return f"no answer within {LIMIT_S:.0f} s" if is_late else str(error)


def run(command: list[str], environ: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of an agent, which has no input and limited time; all its processes end with it."""
    with subprocess.Popen(
        command,
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=LIMIT_S)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(command, process.returncode, output, errors)
