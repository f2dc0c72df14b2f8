"""A session beside its second judgement as printed tables and as a document: verdicts then and now, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from engine.judge.rechecking import Rechecked
from harness import Evaluation, Verdict
from tui.facts.tables import Column, Field
from tui.facts.vocabulary import counted, words

from .plain import listing, table
from .recheck_pages import (
    VERSIONS,
    change_words,
    in_order,
    recheck_rows,
    speed_words,
    verdict_words,
    versions,
)

VERDICTS = [words(verdict) for verdict in Verdict]


class Pair(NamedTuple):
    """One attempt with its two verdicts, in words."""

    attempt: str
    then: str
    now: str
    changed: str
    """The difference: `verdict`, `error`, `speedup`, or nothing."""
    speedup_then: str = ""
    speedup_now: str = ""
    change: str = ""
    error_then: str = ""
    error_now: str = ""


PAIRS: tuple[Field[Pair], ...] = (
    Field(Column("attempt", keep=True), lambda pair: pair.attempt),
    Field(Column("changed", keep=True), lambda pair: pair.changed),
    Field(Column("then", keep=True), lambda pair: pair.then),
    Field(Column("now", keep=True), lambda pair: pair.now),
    Field(Column("speedup then", right=True, if_known=True), lambda pair: pair.speedup_then),
    Field(Column("speedup now", right=True, if_known=True), lambda pair: pair.speedup_now),
    Field(Column("change", right=True, if_known=True), lambda pair: pair.change),
    Field(Column("error then", least=30, if_known=True), lambda pair: pair.error_then),
    Field(Column("error now", least=30, if_known=True), lambda pair: pair.error_now),
)


def pair_of(entry: Rechecked) -> Pair:
    """Return an attempt's two evaluations in words."""
    then = entry.kernel.judged
    return Pair(
        entry.kernel.attempt,
        verdict_words(then),
        verdict_words(entry.now),
        entry.changed,
        speed_words(then),
        speed_words(entry.now),
        change_words(entry.mean),
        error_words(then),
        error_words(entry.now),
    )


def error_words(evaluation: Evaluation | None) -> str:
    """Return the error of an evaluation in one line; empty without one."""
    return "" if evaluation is None or evaluation.error is None else evaluation.error.in_one_line


def rejudge_text(rechecked: Sequence[Rechecked]) -> str:
    """Return the versions then and now, the verdicts then by now, and the attempts that differ."""
    parts = versions(rechecked)
    text = pairs_text([pair_of(entry) for entry in in_order(rechecked)])
    return f"{listing(VERSIONS, parts)}\n\n{text}" if parts else text


def pairs_text(pairs: Sequence[Pair]) -> str:
    """Return the verdicts then by now, and the attempts that differ."""
    different = [pair for pair in pairs if pair.changed]
    parts = [f"{len(pairs) - len(different)} unchanged"]
    parts += [
        f"{count} with another {part}" for part, count in Counter(pair.changed for pair in different).items()
    ]
    blocks = [matrix_text(pairs), f"{counted(len(pairs), 'attempt')} judged again: {', '.join(parts)}"]
    if different:
        blocks.append(listing(PAIRS, different))
    return "\n\n".join(blocks)


def matrix_text(pairs: Sequence[Pair]) -> str:
    """Return the number of attempts by verdict then (a row each) and verdict now (a column each)."""
    counts = Counter((pair.then, pair.now) for pair in pairs)
    rows, columns = (sorted({verdicts[side] for verdicts in counts}, key=_place) for side in (0, 1))
    return table(
        [Column("then \\ now", keep=True), *(Column(name, right=True, keep=True) for name in columns)],
        [[then, *(str(counts[then, now] or "") for now in columns)] for then in rows],
    )


def _place(verdict: str) -> int:
    return VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS)


def rejudge_document(session: str, source: str, rechecked: Sequence[Rechecked]) -> dict[str, object]:
    """Return both sessions, the matrix, and a record for each attempt with both evaluations."""
    counts = Counter((verdict_words(entry.kernel.judged), verdict_words(entry.now)) for entry in rechecked)
    rows = zip(recheck_rows(rechecked), in_order(rechecked), strict=True)
    return {
        "session": session,
        "rejudges": source,
        "matrix": [{"then": then, "now": now, "attempts": count} for (then, now), count in counts.items()],
        "attempts": [row | {"changed": entry.changed or None} for row, entry in rows],
    }
