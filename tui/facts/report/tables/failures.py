"""Tables of failures: how far the attempts came, classes of errors, refusals by kind of cheat, and two protocols."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from engine.predictions.original_verdicts import CandidateOf
from harness import STAGES, Verdict
from sessions.metrics.formulas import share
from sessions.names import stage_word
from tui.facts.report.section import Section
from tui.facts.vocabulary import counted, words
from tui.facts.vocabulary import grouped as digits

from .row_set import KEYS, RowSet, by, frame_of, share_words, table_section

if TYPE_CHECKING:
    from pandas import DataFrame


def stages(rows: RowSet) -> Section:
    """Return the share of the attempts that passed each stage."""

    def figures(own: DataFrame) -> dict[str, Any]:
        failed = own.stage.map({stage: place for place, stage in enumerate(STAGES)})
        passed = {
            stage_word(stage): share(own.correct | (failed > place)) for place, stage in enumerate(STAGES)
        }
        timed = share(own.speedup.notna())
        return {"n": len(own), **passed, stage_word(STAGES[-1]): timed or None}

    meaning = "n: judged attempts. Each column: share of n that passed this stage and all before it."
    sentences = (meaning, rows.coverage(rows.counted), rows.left_out())
    table = by(rows.counted, KEYS, figures)
    return table_section("stages", "How far the attempts came", table, *sentences, words=share_words)


def errors(rows: RowSet) -> Section:
    """Return the verdicts by class of error, the most frequent first."""
    records = [
        {
            **dict(zip(KEYS, keys, strict=True)),
            "verdict": words(Verdict(verdict)),
            "class of error": error.replace("_", " "),
            "attempts": number,
            "of all": number / len(own),
        }
        for keys, own in rows.counted.groupby(list(KEYS.values()))
        for (verdict, error), number in Counter(zip(own.verdict, own.error, strict=True)).most_common()
    ]
    meaning = "Shares are of the judged attempts of the same method and model."
    sentences = (meaning, rows.coverage(rows.counted), rows.left_out())
    return table_section("errors", "Verdicts by class of error", frame_of(records), *sentences)


def refusals(rows: RowSet) -> Section:
    """Return the refused attempts by kind of cheat and model."""
    shown = rows.counted.reference_shown.map({True: ", reference shown", False: ""})
    models = rows.counted.model_name.astype("str") + shown
    refused = rows.counted[rows.counted.verdict == Verdict.REJECTED]
    judged = models.value_counts(sort=False)
    records = []
    for kind, own in sorted(refused.groupby("error"), key=lambda group: -len(group[1])):
        counts = models[own.index].value_counts()
        records.append(
            {"kind": kind.replace("_", " "), **{model: counts.get(model, 0) for model in judged.index}}
        )
    n = ", ".join(f"{model} {digits(int(number))}" for model, number in judged.items())
    meaning = f"Attempts that the judge refused. n, the judged attempts of each model: {n}."
    sentences = (meaning, rows.coverage(rows.counted), rows.left_out())
    return table_section("refusals", "Refusals by kind of cheat and model", frame_of(records), *sentences)


def protocols(rows: RowSet) -> Section:
    """Return the matrix of the benchmark's own verdicts and this judge's, by suite and model."""
    verdicts = [rows.originals.get(CandidateOf(row.task, row.source_sha256), "") for row in rows.rows]
    attempts = rows.frame.assign(original=verdicts, counts=[row.counted for row in rows.rows])
    both = attempts[attempts.counts & ~attempts.original.isin(["", "unsupported"])]

    def figures(own: DataFrame) -> dict[str, Any]:
        passes, here = own.original == "passes", own.correct
        return {
            "n": len(own),
            "correct by both": int((passes & here).sum()),
            "by the original alone": int((passes & ~here).sum()),
            "here alone": int((~passes & here).sum()),
            "by neither": int((~passes & ~here).sum()),
        }

    apart = len(attempts) - len(both)
    reason = f"{counted(apart, 'attempt')} without a verdict by both" if apart else "nothing"
    meaning = "n: candidates with a verdict by the benchmark's own definition of correct and by this judge."
    table = by(both, {"suite": "suite", "model": "model_name"}, figures)
    title = "Original protocol and this judge"
    return table_section("protocols", title, table, meaning, rows.coverage(both), f"Left out: {reason}.")
