"""The attempts as a DataFrame: one dtype and one sentence a column, and values that are those of the rows."""

from __future__ import annotations

import math

from harness import Verdict
from sessions.metrics.attempts import attempts_frame, column_meanings
from sessions.metrics.task_kinds import TaskKind
from sessions.state.speed import Speed
from tests.support.sessions.rows import row


def test_each_column_has_its_dtype_and_a_sentence() -> None:
    rows = [row(speedup=2.0, cost_usd=None), row(number=2, verdict=Verdict.WRONG, cost_usd=0.5)]
    for frame in (attempts_frame(rows), attempts_frame([])):
        meanings = column_meanings()
        assert [(name, str(frame[name].dtype)) for name in frame] == [
            (name, dtype) for name, dtype, _ in meanings
        ]
    assert all(sentence.strip().endswith((".", "...")) or "`" in sentence for _, _, sentence in meanings)


def test_values_are_those_of_the_rows_and_unknown_stays_unknown() -> None:
    provenance = ("MI300X", "", "6.4", "2.8.0", "3.7.1")
    timed = row(
        "suite/x", speed=Speed(2.0, 1.9, 2.1, ">=", 4, 5), provenance=provenance, without=("one-shot", "examples"),
        reference_shown=True, place=(2.0, 2.0), input_tokens=None,
    )  # fmt: skip
    failed = row("suite/y", verdict=Verdict.UNSUPPORTED, place=(0.0, 1.0))
    frame = attempts_frame([timed, failed], {"suite/x": TaskKind("Math", 3)})
    first, second = frame.to_dict("records")
    assert (first["speedup"], first["low"], first["sign"], first["cases"]) == (2.0, 1.9, ">=", 4)
    assert (first["hardware"], first["driver"], first["partition"]) == ("MI300X", "6.4", "")
    assert (first["without"], first["variant"]) == (
        "one-shot, examples",
        "geak without one-shot, examples, reference shown",
    )
    assert (first["suite"], first["category"], first["difficulty"]) == ("suite", "Math", 3)
    assert (first["left_out"], second["left_out"]) == ("", "unsupported")
    assert first["rank"] > second["rank"]
    assert all(map(math.isnan, (first["input_tokens"], second["speedup"], second["difficulty"])))
