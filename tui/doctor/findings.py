"""Findings about a machine, and how they are laid out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from enum import StrEnum

import msgspec

from tui.plain import is_terminal, width


class State(StrEnum):
    """How much a finding matters."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; nothing is wrong."""
    WARNING = "warning"
    """Something will not work, or may be lost."""


class Finding(msgspec.Struct, frozen=True):
    """One fact about this machine."""

    subject: str
    state: State
    found: str
    """What is."""
    follows: str = ""
    """What follows from it, and what to do."""


class Section(msgspec.Struct, frozen=True):
    """Findings about one thing."""

    name: str
    findings: tuple[Finding, ...]


def page(section: Section) -> str:
    """A section as text: what is, and below it what follows, no wider than the terminal (80 columns elsewhere)."""
    columns = min(width(), 110) if is_terminal() else 80
    return "\n".join([section.name, *_lines(section, columns)])


def _lines(section: Section, columns: int) -> Iterable[str]:
    subjects = max((len(each.subject) for each in section.findings), default=0)
    margin = 2 + len(State.WARNING) + 2 + subjects + 2
    for each in section.findings:
        head = f"  {each.state:<{len(State.WARNING)}}  {each.subject:<{subjects}}  "
        yield textwrap.fill(
            each.found, columns, initial_indent=head, subsequent_indent=" " * margin, break_on_hyphens=False
        )
        if each.follows:
            yield textwrap.fill(
                each.follows,
                columns,
                initial_indent=" " * margin + "-> ",
                subsequent_indent=" " * (margin + 3),
                break_on_hyphens=False,
            )


def tally(sections: Iterable[Section]) -> str:
    """How many findings there are of each kind."""
    states = [finding.state for each in sections for finding in each.findings]
    return ", ".join(f"{states.count(state)} {state}" for state in State)
