"""The sections of `wavedeck doctor`, in order. A section that fails becomes a finding, never an error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from harness import HarnessReport, probe
from tui.config import load
from tui.diagnostics import Complaint, one_line

from . import agent_checks, machine, model_checks, store_checks, terminal_checks
from .doctor_findings import DoctorFinding, DoctorSection, ok, warning


def examine(environ: Mapping[str, str]) -> Iterator[DoctorSection]:
    """Examine the sections one by one, in the order of the report."""

    @cache
    def judge() -> HarnessReport:
        """Start a server and a guest; two sections need the result."""
        return asyncio.run(probe())

    checks: dict[str, Callable[[], Iterable[DoctorFinding]]] = {
        "machine": machine.machine,
        "GPUs": lambda: machine.gpus(environ),
        "judge": lambda: machine.judge(judge()),
        "sandbox": lambda: machine.sandbox(judge()),
        "models": lambda: model_checks.models(environ),
        "agents": lambda: agent_checks.agents(environ),
        "configuration": lambda: configuration(environ),
        "store": lambda: store_checks.store(environ),
        "detached engine": lambda: store_checks.detached(environ),
        "terminal": lambda: terminal_checks.terminal(environ),
    }
    return (section(name, check) for name, check in checks.items())


def section(name: str, check: Callable[[], Iterable[DoctorFinding]]) -> DoctorSection:
    """Return the findings of one section. An error in the section is a finding too: doctor must work on broken machines."""
    findings: list[DoctorFinding] = []
    try:
        findings.extend(check())
    except Exception as error:  # noqa: BLE001  # the command promises an answer on any machine
        why = f"could not be examined: {one_line(f'{type(error).__name__}: {error}')}"
        findings.append(warning(name, why, "the other sections are not affected; please report this"))
    return DoctorSection(name, tuple(findings))


def configuration(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether the settings can be read, and the source of each setting."""
    try:
        configured = load({}, environ=environ, folder=Path.cwd())
    except Complaint as error:
        yield warning("settings", str(error), "commands that read settings fail with this message")
        return
    yield from (warning("environment", remark) for remark in configured.remarks)
    if not configured.origins:
        yield ok("settings", "none set: all defaults")
    yield from (ok(key, f"from {origin}") for key, origin in configured.origins.items())
