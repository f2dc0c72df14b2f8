"""Selects the rows of a table: by reason to count, in groups.

Every table of reports, studies and comparisons selects its rows here, so that all tables have the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from harness import Verdict

from .attempt_row import AttemptRow

K = TypeVar("K", bound=Hashable)

PERSON = "kernel of a person"
WEAK_ORACLE = "weak oracle"
OTHER_PROVENANCE = "other hardware or software"
REASONS = {
    Verdict.UNSUPPORTED: "unsupported",
    Verdict.CANCELLED: "cancelled",
    Verdict.INFRA_ERROR: "our failure",
}
"""Reasons of verdicts that are not about the candidate."""


class Selection(NamedTuple):
    """Rows that a table counts, and the number of rows that it leaves out, by reason."""

    rows: tuple[AttemptRow, ...]
    left_out: Mapping[str, int]


def reason_left_out(row: AttemptRow) -> str:
    """Returns why accuracies leave out a row; empty if they count it."""
    if row.given:
        return PERSON
    return REASONS.get(row.verdict) or (WEAK_ORACLE if row.weak_oracle else "")


def counted_rows(rows: Iterable[AttemptRow]) -> Selection:
    """Returns the rows that say something about a method."""
    kept, left_out = [], Counter[str]()
    for row in rows:
        reason = reason_left_out(row)
        if not reason:
            kept.append(row)
        else:
            left_out[reason] += 1
    return Selection(tuple(kept), left_out)


def grouped(rows: Iterable[AttemptRow], by: Callable[[AttemptRow], K]) -> dict[K, list[AttemptRow]]:
    """Returns the rows by a key, for example `lambda row: row.method`, in order of appearance."""
    groups: dict[K, list[AttemptRow]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    return groups


def by_instance(rows: Iterable[AttemptRow]) -> dict[tuple[str, str, int], list[AttemptRow]]:
    """Returns the rows of each instance by (session, task, instance), each list by iteration."""
    instances = grouped(rows, lambda row: (row.session, row.task, row.instance))
    return {key: sorted(group, key=lambda row: row.number) for key, group in instances.items()}
