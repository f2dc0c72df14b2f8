"""What this machine has, and what follows from it. Never fails: what cannot be looked into is a finding too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from harness import HarnessReport, probe
from tui.diagnostics import one_line

from . import machine, outside, store
from .findings import Finding, Section, State


@dataclass(frozen=True, slots=True)
class Examination:
    """One section that is still to be looked into."""

    name: str
    look: Callable[[], Iterable[Finding]]


class Judge:
    """The harness as two sections see it; it is started once, when the first of them asks."""

    @cached_property
    def report(self) -> HarnessReport:
        """What a server and a guest said when they were tried."""
        return asyncio.run(probe())

    def versions(self) -> Iterator[Finding]:
        """Whether candidates can be judged here, and with what."""
        yield from machine.judge(self.report)

    def layers(self) -> Iterator[Finding]:
        """What keeps a candidate from everything but its work."""
        yield from machine.sandbox(self.report)


def examine(environ: Mapping[str, str]) -> Iterator[Section]:
    """Every section as it is done, in the order a person asks: can it judge, is it safe, what is kept where, does it last."""
    judge = Judge()
    examinations = [
        Examination("machine", machine.machine),
        Examination("GPUs", lambda: machine.gpus(environ)),
        Examination("judge", judge.versions),
        Examination("sandbox", judge.layers),
        Examination("models", lambda: outside.models(environ)),
        Examination("configuration", lambda: outside.configuration(environ)),
        Examination("store", lambda: store.store(environ)),
        Examination("detached engine", lambda: store.detached(environ)),
        Examination("terminal", lambda: outside.terminal(environ)),
    ]
    return map(section, examinations)


def section(examination: Examination) -> Section:
    """The findings of one section. What cannot be looked into is a finding too: doctor is for machines that are not well."""
    findings: list[Finding] = []
    try:
        findings.extend(examination.look())
    except Exception as error:  # noqa: BLE001  # the command promises an answer on any machine
        findings.append(
            Finding(
                examination.name,
                State.WARNING,
                f"could not be examined: {one_line(f'{type(error).__name__}: {error}')}",
                "the other sections stand; please report this",
            )
        )
    return Section(examination.name, tuple(findings))
