"""Section of doctor about agents that are not Wavedeck's own: which are installed, and whether they can be served."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from .doctor_findings import DoctorFinding, note, ok, warning

PROGRAMS = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "openhands": "OpenHands",
}
VERSION_S = 10.0


def agents() -> Iterator[DoctorFinding]:
    """Yield the version of the MCP SDK, and of each agent on the path."""
    try:
        yield ok("mcp", version("mcp"), "wavedeck mcp serves the judge to agents: docs/agents.md")
    except PackageNotFoundError:
        yield note("mcp", "not installed", "wavedeck mcp needs it: pip install 'wavedeck[mcp]'")
    for program, name in PROGRAMS.items():
        path = shutil.which(program)
        if path is None:
            yield note(name, f"no {program} on the path")
            continue
        try:
            done = subprocess.run(
                [path, "--version"], capture_output=True, text=True, timeout=VERSION_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            yield warning(name, f"{path} --version fails: {error}", "start it once by hand")
        else:
            yield ok(name, " ".join(done.stdout.split()), path)
