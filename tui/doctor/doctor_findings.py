"""Findings about a machine, and their layout as text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tui.print.plain import is_terminal, width


class State(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Information; nothing is wrong."""
    WARNING = "warning"
    """Something will not work, or may be lost."""


class DoctorFinding(msgspec.Struct, frozen=True):
    """One fact about this machine."""

    subject: str
    state: State
    found: str
    """The fact itself."""
    follows: str = ""
    """The consequence, and what to do."""


def ok(subject: str, fact: str, follows: str = "") -> DoctorFinding:
    """Return a fact that is as it should be."""
    return DoctorFinding(subject, State.OK, fact, follows)


def note(subject: str, fact: str, follows: str = "") -> DoctorFinding:
    """Return a fact to know; nothing is wrong."""
    return DoctorFinding(subject, State.NOTE, fact, follows)


def warning(subject: str, fact: str, follows: str = "") -> DoctorFinding:
    """Return a fact because of which something will not work, or may be lost."""
    return DoctorFinding(subject, State.WARNING, fact, follows)


class DoctorSection(msgspec.Struct, frozen=True):
    """Findings about one thing."""

    name: str
    findings: tuple[DoctorFinding, ...]


def page(section: DoctorSection) -> str:
    """Return a section as text, folded to the terminal (80 columns without a terminal)."""
    columns = min(width(), 110) if is_terminal() else 80
    subjects = max((len(finding.subject) for finding in section.findings), default=0)
    margin = 2 + len(State.WARNING) + 2 + subjects + 2
    lines = [section.name]
    for finding in section.findings:
        head = f"  {finding.state:<{len(State.WARNING)}}  {finding.subject:<{subjects}}  "
        lines += _folded(finding.found, columns, head, margin)
        lines += _folded(finding.follows, columns, " " * margin + "-> ", margin + 3)
    return "\n".join(lines)


def _folded(text: str, columns: int, head: str, margin: int) -> list[str]:
    return textwrap.wrap(
        text, columns, initial_indent=head, subsequent_indent=" " * margin, break_on_hyphens=False
    )


def tally(sections: Iterable[DoctorSection]) -> str:
    """Return the number of findings in each state."""
    states = [finding.state for section in sections for finding in section.findings]
    return ", ".join(f"{states.count(state)} {state}" for state in State)
