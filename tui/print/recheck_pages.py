"""A recheck of kept kernels as printed tables, and as records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from engine.judge.rechecking import Change, Rechecked, RecheckResult
from harness import Evaluation
from harness.wire.results.provenance import Provenance
from sessions.names import short_task
from sessions.state.cases import CaseRow
from sessions.state.speed import speed_of
from tui.facts.tables import Column, Field, Number
from tui.facts.vocabulary import UNKNOWN, words

from .plain import listing

JUDGED_BY = "The judge of now: the inputs, the seed and the timing baseline of each kernel's session."
TIMES = (
    "Times in microseconds. A change is the speedup of now over the speedup of then, each against the baseline in its "
    "own run, with its 95 % interval; times of different runs are never divided."
)
NOT_KNOWN = "not known"
DETAILS = ("address", "max_clock_mhz", "power_cap_w")
"""Facts of one GPU that are no versions."""


class Version(NamedTuple):
    """A part of the hardware or software, then and now."""

    part: str
    then: str
    now: str


class ComparedCase(NamedTuple):
    """One case of a kernel that was timed then and now."""

    attempt: str
    then: CaseRow
    now: CaseRow
    change: Change | None


def versions(rechecked: Sequence[Rechecked]) -> list[Version]:
    """Return hardware and software then and now, a row for each part that is known on one side."""
    then = _provenances([entry.kernel.judged for entry in rechecked])
    now = _provenances([entry.now for entry in rechecked])
    names = [name for name in Provenance.__struct_fields__ if name not in DETAILS]
    rows = (Version(name, _values(then, name), _values(now, name)) for name in names)
    return [row for row in rows if row.then or row.now]


def _provenances(evaluations: Sequence[Evaluation | None]) -> list[Provenance | None]:
    return [evaluation.provenance if evaluation is not None else None for evaluation in evaluations]


def _values(provenances: Sequence[Provenance | None], name: str) -> str:
    """Return the different values of a field: `3.6.0, 3.7.0`."""
    values = [str(getattr(provenance, name)) for provenance in provenances if provenance is not None]
    return ", ".join(dict.fromkeys(value for value in values if value))


VERSIONS: tuple[Field[Version], ...] = (
    Field(Column("", keep=True), lambda row: row.part),
    Field(Column("then", keep=True), lambda row: row.then or NOT_KNOWN),
    Field(Column("now", keep=True), lambda row: row.now or NOT_KNOWN),
    Field(
        Column("", keep=True), lambda row: "changed" if row.then and row.now and row.then != row.now else ""
    ),
)


def verdict_words(evaluation: Evaluation | None) -> str:
    """Return the verdict in words; `UNKNOWN` if there is none."""
    return UNKNOWN if evaluation is None else words(evaluation.verdict)


def speed_words(evaluation: Evaluation | None) -> str:
    """Return the speed with its interval; empty if it is not known."""
    speed = speed_of(evaluation) if evaluation is not None else None
    return "" if speed is None else str(speed)


def change_words(change: Change | None) -> str:
    """Return `-4.2 % [-6.0, -2.4]`; empty without a change."""
    if change is None:
        return ""
    value, low, high = ((end - 1) * 100 for end in (change.value, change.low, change.high))
    return f"{value:+.1f} % [{low:+.1f}, {high:+.1f}]"


KERNELS: tuple[Field[Rechecked], ...] = (
    Field(Column("task", keep=True), lambda entry: short_task(entry.kernel.task)),
    Field(Column("attempt", keep=True), lambda entry: entry.kernel.attempt),
    Field(Column("result", keep=True), lambda entry: str(entry.result)),
    Field(Column("then", keep=True, drop=1), lambda entry: verdict_words(entry.kernel.judged)),
    Field(Column("now", keep=True), lambda entry: verdict_words(entry.now)),
    Field(Number("speedup then", if_known=True), lambda entry: speed_words(entry.kernel.judged)),
    Field(Number("speedup now", if_known=True), lambda entry: speed_words(entry.now)),
    Field(Number("change", if_known=True), lambda entry: change_words(entry.mean)),
    Field(Column("why", least=30, if_known=True), lambda entry: entry.why),
    Field(Column("session", keep=True, drop=2), lambda entry: entry.kernel.session),
)
CASES: tuple[Field[ComparedCase], ...] = (
    Field(Column("attempt", keep=True), lambda case: case.attempt),
    Field(Column("case", keep=True), lambda case: case.now.case),
    Field(Number("baseline then", drop=2), lambda case: str(case.then.baseline)),
    Field(Number("now", drop=2), lambda case: str(case.now.baseline)),
    Field(Number("kernel then", drop=1), lambda case: str(case.then.candidate)),
    Field(Number("now", drop=1), lambda case: str(case.now.candidate)),
    Field(Number("speedup then"), lambda case: case.then.words),
    Field(Number("speedup now"), lambda case: case.now.words),
    Field(Number("change"), lambda case: change_words(case.change)),
)
ORDER = tuple(RecheckResult)


def in_order(rechecked: Sequence[Rechecked]) -> list[Rechecked]:
    """Return the worst results first."""
    return sorted(rechecked, key=lambda entry: (ORDER.index(entry.result), entry.kernel.task))


def compared_cases(rechecked: Sequence[Rechecked]) -> list[ComparedCase]:
    """Return the cases that were timed then and now, by kernel; the greatest loss first, then cases without a change."""
    rows = []
    for entry in in_order(rechecked):
        changes = {change.case: change for change in entry.changes}
        cases = [
            ComparedCase(entry.kernel.attempt, then, now, changes.get(now.case)) for then, now in entry.cases
        ]
        rows += sorted(cases, key=lambda case: case.change.value if case.change is not None else 9e9)
    return rows


def recheck_text(rechecked: Sequence[Rechecked]) -> str:
    """Return the versions then and now, a row for each kernel, and the cases that were timed then and now."""
    blocks = [listing(VERSIONS, versions(rechecked)), f"{listing(KERNELS, in_order(rechecked))}\n{JUDGED_BY}"]
    cases = compared_cases(rechecked)
    if cases:
        blocks.append(f"{listing(CASES, cases)}\n{TIMES}")
    return "\n\n".join(blocks)


def recheck_rows(rechecked: Sequence[Rechecked]) -> list[dict[str, object]]:
    """Return one record for each kernel, with both evaluations."""
    return [
        {
            "session": entry.kernel.session,
            "task": entry.kernel.task,
            "attempt": entry.kernel.attempt,
            "result": entry.result,
            "changed": entry.changed or None,
            "why": entry.why or None,
            "change": _ends(entry.mean),
            "changes": [_ends(change) for change in entry.changes],
            "then": entry.kernel.judged,
            "now": entry.now,
        }
        for entry in in_order(rechecked)
    ]


def _ends(change: Change | None) -> dict[str, object] | None:
    return None if change is None else msgspec.to_builtins(change)
