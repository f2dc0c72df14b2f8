"""Section of doctor about agents that are not Wavedeck's own: which are installed, and whether they accept our MCP server."""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from engine.agent_programs import guard
from engine.agent_programs.output import SERVER
from engine.agent_programs.presets import GEMINI_SETTINGS, PRESETS, AgentProgram, server_settings
from harness.linux.installed import installed_version
from harness.sandbox import landlock
from suites.privacy import holds_key

from .doctor_findings import DoctorFinding, note, ok, warning

LIMIT_S = 30.0
"""For each command of an agent, and for the start of our server."""
VERSION_OPTIONS = {"mini": "--help"}
"""Options that print the version, where it is not `--version`."""
LISTS = ("claude", "gemini")
"""Programs with a command `mcp list` that connects to the servers in their settings. It needs no model."""
CONNECTED = re.compile(rf"\b{SERVER}: .*- \W*Connected\b")


class Served(NamedTuple):
    """Our MCP server, which runs in a folder of its own."""

    folder: Path
    url: str
    token: str


def agents(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield what confines agents, the version of the MCP SDK, and of each agent on the path whether it accepts our server."""
    yield confinement()
    sdk = installed_version("mcp")
    if sdk:
        yield ok("mcp", sdk, "wavedeck mcp serves the judge to agents: docs/agents.md")
    else:
        yield note("mcp", "not installed", "wavedeck mcp needs it: pip install 'wavedeck[mcp]'")
    paths = {
        preset.name: shutil.which(preset.command[0], path=environ.get("PATH")) for preset in PRESETS.values()
    }
    connects = sdk and any(paths[preset.name] for preset in PRESETS.values() if preset.command[0] in LISTS)
    with serving(environ, starts=bool(connects)) as served, ThreadPoolExecutor() as pool:
        yield from pool.map(
            lambda preset: finding(preset, paths[preset.name], served, environ), PRESETS.values()
        )


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


def finding(
    preset: AgentProgram, path: str | None, served: Served | None, environ: Mapping[str, str]
) -> DoctorFinding:
    """Return an agent's version, and whether it accepts our server."""
    name, program = preset.name, preset.command[0]
    if path is None:
        return note(name, f"no {program} on the path")
    option = VERSION_OPTIONS.get(program, "--version")
    try:
        done = run([path, option], dict(environ), Path.cwd())
        done.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        return warning(name, f"no version: {cause(error)}", f"start it once by hand: {path} {option}")
    described = partial(described_version, done.stdout)
    use = f"{path}; wavedeck run --agent {name}"
    if not preset.has_mcp:
        return ok(name, described("sends kernels by wavedeck mcp call eval, without MCP"), use)
    if program not in LISTS:
        return ok(name, described(f"MCP not checked: no command of {program} connects without a model"), use)
    if served is None:
        return ok(name, described("MCP not checked: wavedeck mcp did not start"), use)
    try:
        connected = accepts(path, served, environ)
    except (OSError, subprocess.SubprocessError) as error:
        return ok(name, described(f"MCP not checked: {cause(error)}"), use)
    if not connected:
        return warning(
            name,
            described(f"`{program} mcp list` does not connect to wavedeck mcp"),
            "docs/agents.md has its settings",
        )
    return ok(name, described("accepts wavedeck mcp"), use)


def described_version(output: str, words: str) -> str:
    """Return the first line of a program's output, and words about the program."""
    return f"{output.strip().partition(chr(10))[0]}; {words}"


def cause(error: Exception) -> str:
    """Return why a command of an agent gave no answer."""
    is_late = isinstance(error, subprocess.TimeoutExpired)
    return f"no answer within {LIMIT_S:.0f} s" if is_late else str(error)


def accepts(path: str, served: Served, environ: Mapping[str, str]) -> bool:
    """Return whether `mcp list` of a program connects to our server, with settings of a folder of its own."""
    home = served.folder / Path(path).name
    claude, gemini = server_settings(served.url, served.token)
    for file, settings in ((".claude.json", claude), (GEMINI_SETTINGS, gemini)):
        (home / file).parent.mkdir(parents=True, exist_ok=True)
        (home / file).write_text(settings, encoding="utf-8")
    kept = {
        name: value
        for name, value in environ.items()
        if not holds_key(name, value) and name != "CLAUDE_CONFIG_DIR"
    }
    done = run([path, "mcp", "list"], kept | {"HOME": str(home), "GEMINI_CLI_TRUST_WORKSPACE": "true"}, home)
    return CONNECTED.search(done.stdout + done.stderr) is not None


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


@contextmanager
def serving(environ: Mapping[str, str], *, starts: bool) -> Iterator[Served | None]:
    """Run `wavedeck mcp` for the block, with a home that is removed; yields `None` if it is not wanted or does not start."""
    if not starts:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="wavedeck-doctor-") as folder:
        home = Path(folder, "wavedeck")
        server = subprocess.Popen(
            [sys.executable, "-P", "-m", "tui", "mcp", "--http", "0"],
            env={**environ, "WAVEDECK_HOME": str(home)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            assert server.stderr is not None
            ready, _, _ = select.select([server.stderr], [], [], LIMIT_S)
            line = server.stderr.readline().decode() if ready else ""
            address = re.search(r"http://\S+/mcp", line)
            token = home / "mcp-token"
            yield (
                Served(Path(folder), address[0], token.read_text().strip())
                if address and token.exists()
                else None
            )
        finally:
            server.kill()
            server.wait()
            if server.stderr is not None:
                server.stderr.close()
