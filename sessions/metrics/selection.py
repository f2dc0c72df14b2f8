"""Selects the rows of a table: by reason to count, the best of a task, groups.

Every table of reports, studies and comparisons selects its rows here, so that all tables have the same rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import msgspec

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


def best_row(rows: Iterable[AttemptRow]) -> AttemptRow | None:
    """Returns the best row of one task by the house's rank; `None` without a row that no person rejected.

    The best may be a failed attempt. Of equal rows the first is the best.
    """
    return max((row for row in rows if not row.rejected), key=lambda row: row.place, default=None)


def best_rows(
    rows: Iterable[AttemptRow], by: Callable[[AttemptRow], Hashable] = lambda row: (row.session, row.task)
) -> list[AttemptRow]:
    """Returns the best row of each group, by default of each task of each session, in order of appearance.

    Its `call` is true if any row of the group that no person rejected ran: a task is called once.
    """
    bests = []
    for group in grouped(rows, by).values():
        if (best := best_row(group)) is not None:
            called = any(row.call for row in group if not row.rejected)
            bests.append(best if best.call == called else msgspec.structs.replace(best, call=called))
    return bests


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
