"""Tables of failures: how far the attempts came, classes of errors, and refusals by kind of cheat."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import NamedTuple

from harness import STAGES, Verdict
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.selection import grouped
from sessions.names import stage_word
from tui.facts.report.section import Section, section_of
from tui.facts.tables import Cell, Column, Field, Number
from tui.facts.vocabulary import grouped as digits
from tui.facts.vocabulary import words

from .row_set import METHOD, MODEL, RowGroup, RowSet, figure, key_fields, number, share, share_words

ATTEMPTS = number("n", lambda group: len(group.rows))
TIMING = STAGES[-1]


def passed(row: AttemptRow, stage: int) -> bool:
    """True if an attempt passed a stage of the judge, given as its place."""
    if row.correct:
        return STAGES[stage] != TIMING or row.headline is not None
    return bool(row.stage) and stage < STAGES.index(row.stage)


def stage_section(rows: RowSet) -> Section:
    """Return the share of the attempts that passed each stage."""
    groups = rows.by_method
    fields = (*key_fields((METHOD, MODEL)), ATTEMPTS, *map(_passed, STAGES))
    section = section_of("How far the attempts came", fields, groups, lambda group: "|".join(group.keys))
    meaning = "n: judged attempts. Each column: share of n that passed this stage and all before it."
    return section.named("stages", (meaning, rows.left_out()))


def _passed(stage: str) -> Field[RowGroup]:
    def value(group: RowGroup) -> float | None:
        number = sum(map(passed, group.rows, repeat(STAGES.index(stage))))
        return None if stage == TIMING and not number else number / len(group.rows)

    return share(stage_word(stage), value)


class ErrorClass(NamedTuple):
    """Attempts of a method and model with one verdict and class of error."""

    keys: tuple[str, ...]
    verdict: Verdict
    error: str
    attempts: int
    share: float


def error_section(rows: RowSet) -> Section:
    """Return the verdicts by class of error, the most frequent first."""
    classes = []
    for group in rows.by_method:
        counts = Counter((row.verdict, row.error) for row in group.rows)
        classes += [
            ErrorClass(group.keys, verdict, error, number, number / len(group.rows))
            for (verdict, error), number in counts.most_common()
        ]
    fields: tuple[Field[ErrorClass], ...] = (
        *key_fields((METHOD, MODEL)),
        Field(Column("verdict", keep=True), lambda row: words(row.verdict)),
        Field(Column("class of error", keep=True, if_known=True), lambda row: row.error.replace("_", " ")),
        Field(Number("attempts"), lambda row: figure(row.attempts, digits)),
        Field(Number("of all"), lambda row: figure(row.share, share_words)),
    )
    section = section_of(
        "Verdicts by class of error",
        fields,
        classes,
        lambda row: "|".join((*row.keys, row.verdict, row.error)),
    )
    return section.named(
        "errors", ("Shares are of the judged attempts of the same method and model.", rows.left_out())
    )


class RefusalCount(NamedTuple):
    """A kind of cheat, and the attempts that were refused for it."""

    kind: str
    by_model: dict[str, int]


def refusal_section(rows: RowSet) -> Section:
    """Return the refused attempts by kind of cheat and model."""
    models = {model: len(own) for model, own in grouped(rows.counted, lambda row: row.model).items()}
    refused = [row for row in rows.counted if row.verdict is Verdict.REJECTED]
    refusals = [
        RefusalCount(kind.replace("_", " "), Counter(row.model for row in own))
        for kind, own in grouped(refused, lambda row: row.error).items()
    ]
    refusals.sort(key=lambda refusal: -sum(refusal.by_model.values()))
    fields: tuple[Field[RefusalCount], ...] = (
        Field(Column("kind", keep=True), lambda refusal: refusal.kind),
        *(_refused(model, judged) for model, judged in models.items()),
    )
    section = section_of(
        "Refusals by kind of cheat and model", fields, refusals, lambda refusal: refusal.kind
    )
    n = ", ".join(f"{model} {digits(judged)}" for model, judged in models.items())
    meaning = f"Attempts that the judge refused, with their share of the model's judged attempts. n: {n}."
    return section.named("refusals", (meaning, rows.left_out()))


def _refused(model: str, judged: int) -> Field[RefusalCount]:
    def cell(refusal: RefusalCount) -> Cell:
        number = refusal.by_model[model]
        return Cell(f"{digits(number)} ({share_words(number / judged)})", value=number)

    return Field(Number(model), cell)
