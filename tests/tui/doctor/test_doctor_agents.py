"""Doctor about agents: scripted programs with the names of Claude Code and Codex, and our real MCP server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from engine.agent_programs.presets import PRESETS
from harness.sandbox import landlock
from tests.support.waiting import wait_until
from tui.doctor import agent_checks
from tui.doctor.doctor_findings import DoctorFinding, State

LISTING = """#!PYTHON
import sys

if sys.argv[1:] == ["--version"]:
    print("1.2.3 (scripted)")
    sys.exit()

import asyncio, json
from pathlib import Path

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def count():
    server = json.loads((Path.home() / ".claude.json").read_text())["mcpServers"]["wavedeck"]
    http = httpx2.AsyncClient(headers=server["headers"], timeout=20)
    async with http, Client(streamable_http_client(server["url"], http_client=http)) as client:
        return len((await client.list_tools()).tools)


print(f"wavedeck: {asyncio.run(count())} tools (HTTP) - \\u2714 Connected")
""".replace("PYTHON", sys.executable)
"""A Claude Code that connects to our server as its file of settings says."""


def examine(folder: Path, **programs: str) -> dict[str, DoctorFinding]:
    """The findings about agents, with these programs on the path."""
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    findings = agent_checks.agents({**os.environ, "PATH": f"{folder}:/usr/bin:/bin"})
    return {finding.subject: finding for finding in findings}


def is_running(started: Path) -> bool:
    """Whether the process that wrote its number there runs; a zombie does not."""
    try:
        return ") Z" not in Path("/proc", started.read_text().strip(), "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_doctor_says_which_agents_connect_to_our_server(tmp_path: Path) -> None:
    gemini = "#!/bin/sh\necho 'wavedeck: (HTTP) - \u2718 Disconnected'\n"
    findings = examine(tmp_path, claude=LISTING, gemini=gemini, codex="#!/bin/sh\necho codex-cli 7\n")
    claude = findings["claude-code"]
    assert (claude.state, claude.found) == (State.OK, "1.2.3 (scripted); accepts wavedeck mcp")
    assert findings["codex"].found.startswith("codex-cli 7; MCP not checked: no command of codex connects")
    assert findings["gemini"].state is State.WARNING
    assert findings["gemini"].found.endswith("`gemini mcp list` does not connect to wavedeck mcp")
    assert findings["openhands"].state is State.NOTE
    if landlock.version():
        assert findings["confinement"].state is State.OK


def test_doctor_waits_for_no_agent_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_checks, "LIMIT_S", 1.0)
    started, codex = tmp_path / "started", tmp_path / "codex"
    codex.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {started}\nwait\n")
    codex.chmod(0o700)
    codex_finding = agent_checks.finding(PRESETS["codex"], str(codex), None, os.environ)
    assert codex_finding.found == "no version: no answer within 1 s"
    wait_until(lambda: not is_running(started), "the end of the agent's own process")


def test_doctor_shows_a_version_that_is_no_utf_8(tmp_path: Path) -> None:
    findings = examine(tmp_path, codex="#!/bin/sh\nprintf 'caf\\351 7\\n'\n")
    assert findings["codex"].found.startswith("caf\ufffd 7; MCP not checked")
