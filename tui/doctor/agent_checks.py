"""Section of doctor about agents that are not Wavedeck's own: which are installed, and whether they can be served."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from engine.agent_programs.presets import PRESETS

from .doctor_findings import DoctorFinding, note, ok, warning

VERSION_S = 10.0
VERSION_OPTIONS = {"mini": "--help"}
"""Options that print the version, where it is not `--version`."""


def agents() -> Iterator[DoctorFinding]:
    """Yield the version of the MCP SDK, and of each agent on the path."""
    try:
        yield ok("mcp", version("mcp"), "wavedeck mcp serves the judge to agents: docs/agents.md")
    except PackageNotFoundError:
        yield note("mcp", "not installed", "wavedeck mcp needs it: pip install 'wavedeck[mcp]'")
    for preset in PRESETS.values():
        name, program = preset.name, preset.command[0]
        path = shutil.which(program)
        if path is None:
            yield note(name, f"no {program} on the path")
            continue
        try:
            done = subprocess.run(
                [path, VERSION_OPTIONS.get(program, "--version")],
                capture_output=True,
                text=True,
                timeout=VERSION_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            yield warning(name, f"{path} --version fails: {error}", "start it once by hand")
        else:
            yield ok(name, done.stdout.strip().partition("\n")[0], f"{path}; wavedeck run --agent {name}")
