"""Doctor about agents: scripted programs with the names of agents."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.agent_programs.presets import PRESETS
from harness.sandbox import landlock
from tests.support.waiting import wait_until
from tui.doctor import agent_checks
from tui.doctor.doctor_findings import DoctorFinding, State


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


def test_doctor_says_which_agents_are_installed_and_how_they_send_kernels(tmp_path: Path) -> None:
    findings = examine(tmp_path, claude="#!/bin/sh\necho 1.2.3\n", mini="#!/bin/sh\necho mini 2\n")
    claude, mini = findings["claude-code"], findings["mini-swe-agent"]
    assert (claude.state, claude.found) == (State.OK, "1.2.3; sends kernels by MCP")
    assert mini.found == "mini 2; sends kernels by wavedeck mcp call eval, without MCP"
    assert findings["openhands"].state is State.NOTE
    if landlock.version():
        assert findings["confinement"].state is State.OK


def test_doctor_waits_for_no_agent_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_checks, "LIMIT_S", 1.0)
    started, codex = tmp_path / "started", tmp_path / "codex"
    codex.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {started}\nwait\n")
    codex.chmod(0o700)
    environ = {**os.environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert agent_checks.finding(environ, PRESETS["codex"]).found == "no version: no answer within 1 s"
    wait_until(lambda: not is_running(started), "the end of the agent's own process")


def test_doctor_shows_a_version_that_is_no_utf_8(tmp_path: Path) -> None:
    findings = examine(tmp_path, codex="#!/bin/sh\nprintf 'caf\\351 7\\n'\n")
    assert findings["codex"].found == "caf\ufffd 7; sends kernels by MCP"
