"""The sections of `wavedeck doctor`, in order. A section that fails becomes a finding, never an error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from harness import HarnessReport, probe
from tui.config import load
from tui.diagnostics import Complaint, one_line

from . import machine, model_checks, store_checks, terminal_checks
from .doctor_findings import DoctorFinding, DoctorSection, State


@dataclass(frozen=True, slots=True)
class Examination:
    """One section that is not examined yet."""

    name: str
    look: Callable[[], Iterable[DoctorFinding]]


class JudgeProbe:
    """Report of the harness for two sections; the harness is probed once, on first use."""

    @cached_property
    def report(self) -> HarnessReport:
        """Result of starting a server and a guest."""
        return asyncio.run(probe())

    def versions(self) -> Iterator[DoctorFinding]:
        """Yield whether this machine can judge candidates, and the versions."""
        yield from machine.judge(self.report)

    def layers(self) -> Iterator[DoctorFinding]:
        """Yield the layers of the sandbox."""
        yield from machine.sandbox(self.report)


def examine(environ: Mapping[str, str]) -> Iterator[DoctorSection]:
    """Examine the sections one by one, in the order of the report."""
    judge = JudgeProbe()
    examinations = [
        Examination("machine", machine.machine),
        Examination("GPUs", lambda: machine.gpus(environ)),
        Examination("judge", judge.versions),
        Examination("sandbox", judge.layers),
        Examination("models", lambda: model_checks.models(environ)),
        Examination("configuration", lambda: configuration(environ)),
        Examination("store", lambda: store_checks.store(environ)),
        Examination("detached engine", lambda: store_checks.detached(environ)),
        Examination("terminal", lambda: terminal_checks.terminal(environ)),
    ]
    return map(section, examinations)


def section(examination: Examination) -> DoctorSection:
    """Return the findings of one section. An error in the section is a finding too: doctor must work on broken machines."""
    findings: list[DoctorFinding] = []
    try:
        findings.extend(examination.look())
    except Exception as error:  # noqa: BLE001  # the command promises an answer on any machine
        findings.append(
            DoctorFinding(
                examination.name,
                State.WARNING,
                f"could not be examined: {one_line(f'{type(error).__name__}: {error}')}",
                "the other sections are not affected; please report this",
            )
        )
    return DoctorSection(examination.name, tuple(findings))


def configuration(environ: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Yield whether the settings can be read, and the source of each setting."""
    try:
        configured = load({}, environ=environ, folder=Path.cwd())
    except Complaint as error:
        yield DoctorFinding(
            "settings", State.WARNING, str(error), "commands that read settings fail with this message"
        )
        return
    for remark in configured.remarks:
        yield DoctorFinding("environment", State.WARNING, remark)
    if not configured.origins:
        yield DoctorFinding("settings", State.OK, "none set: all defaults")
    for key, origin in configured.origins.items():
        yield DoctorFinding(key, State.OK, f"from {origin}")
