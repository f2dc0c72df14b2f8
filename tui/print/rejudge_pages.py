"""A session beside its second judgement as printed tables and as a document: verdicts then and now, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from engine.judge.rechecking import Rechecked
from harness import Verdict
from tui.facts.tables import Column, Number
from tui.facts.vocabulary import counted, words

from .plain import listing, table
from .recheck_pages import KERNELS, VERSIONS, in_order, recheck_rows, verdict_words, versions

VERDICTS = [words(verdict) for verdict in Verdict]


def verdict_counts(rechecked: Iterable[Rechecked]) -> Counter[tuple[str, str]]:
    """Return the number of attempts by verdict then and verdict now."""
    return Counter((verdict_words(entry.kernel.judged), verdict_words(entry.now)) for entry in rechecked)


def rejudge_text(rechecked: Sequence[Rechecked]) -> str:
    """Return the versions then and now, the verdicts then by now, and the attempts that differ."""
    parts = versions(rechecked)
    different = [entry for entry in in_order(rechecked) if entry.changed]
    summary = [f"{len(rechecked) - len(different)} unchanged"]
    summary += [
        f"{count} with another {part}"
        for part, count in Counter(entry.changed for entry in different).items()
    ]
    blocks = (
        listing(VERSIONS, parts) if parts else "",
        matrix_text(verdict_counts(rechecked)),
        f"{counted(len(rechecked), 'attempt')} judged again: {', '.join(summary)}",
        listing(KERNELS[:-1], different) if different else "",  # without the column of the session
    )
    return "\n\n".join(filter(None, blocks))


def matrix_text(counts: Counter[tuple[str, str]]) -> str:
    """Return the number of attempts by verdict then (a row each) and verdict now (a column each)."""
    rows, columns = (sorted({verdicts[side] for verdicts in counts}, key=_place) for side in (0, 1))
    return table(
        [Column("then \\ now", keep=True), *(Number(name, keep=True) for name in columns)],
        [[then, *(str(counts[then, now] or "") for now in columns)] for then in rows],
    )


def _place(verdict: str) -> tuple[int, str]:
    return (VERDICTS.index(verdict) if verdict in VERDICTS else len(VERDICTS)), verdict


def rejudge_document(session: str, source: str, rechecked: Sequence[Rechecked]) -> dict[str, object]:
    """Return both sessions, the matrix, and a record for each attempt with both evaluations."""
    return {
        "session": session,
        "rejudges": source,
        "matrix": matrix_rows(verdict_counts(rechecked)),
        "attempts": recheck_rows(rechecked),
    }


def matrix_rows(counts: Counter[tuple[str, str]]) -> list[dict[str, object]]:
    """Return the matrix for programs: a record for each pair of verdicts."""
    return [{"then": then, "now": now, "attempts": count} for (then, now), count in counts.items()]
