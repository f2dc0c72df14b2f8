"""Tables of a report over the rows of sessions: what they count, what they leave out, and the same cells in each format."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import math
from pathlib import Path

import msgspec
import pytest

from engine.predictions.original_verdicts import ORIGINAL, CandidateOf, original_verdicts
from engine.predictions.results import WAVEDECK, PredictionResult, ResultLines
from harness import Verdict
from sessions import fold
from sessions.metrics.attempt_row import AttemptRow
from sessions.metrics.task_kinds import TaskKind
from suites.public.recorded import recorded_folder
from tests.support.sessions.measured_sessions import measured
from tests.support.sessions.rows import row
from tui.facts.report import Section, report_of
from tui.facts.report.document import Document, rows_document
from tui.facts.report.section import Plot
from tui.facts.report.tables import TABLES, RowSet
from tui.facts.report.tables.contamination import likenesses
from tui.print.markdown_text import inline
from tui.print.report import PAGES, as_csv, document_data

MI300X = ("MI300X", "", "6.10", "2.8.0", "3.7.1")
H100 = ("H100", "", "550", "2.8.0", "3.7.1")
X, Y = "suite/x", "suite/y"


def timed(
    task: str = X, instance: int = 1, number: int = 1, *, speedup: float, **fields: object
) -> AttemptRow:
    return row(
        task, instance, number, speedup=speedup, **{"provenance": MI300X, "against": "triton"} | fields
    )


def wrong(task: str = X, instance: int = 1, number: int = 1, **fields: object) -> AttemptRow:
    return row(task, instance, number, verdict=Verdict.WRONG, error="mismatch", stage="execution", **fields)


def table(name: str, *rows: AttemptRow, **facts: object) -> Section:
    return TABLES[name](RowSet(rows, **facts))


def cells(section: Section) -> list[dict[str, str]]:
    columns, rows = section.printed()
    return [dict(zip([column.title for column in columns], texts, strict=True)) for texts in rows]


STUDY = (
    wrong(number=1, input_tokens=900, output_tokens=100, cost_usd=0.1),
    timed(number=2, speedup=2.0, input_tokens=900, output_tokens=100, cost_usd=0.1),
    timed(Y, speedup=8.0, input_tokens=900, output_tokens=100, cost_usd=0.1),
    wrong(session="t", number=1, input_tokens=900, output_tokens=100, cost_usd=0.1),
    wrong(session="t", number=2, input_tokens=900, output_tokens=100, cost_usd=0.1),
    timed(Y, session="t", speedup=2.0, input_tokens=900, output_tokens=100, cost_usd=0.1),
    row(X, 2, verdict=Verdict.UNSUPPORTED, cost_usd=0.05),
    row(X, 2, verdict=Verdict.INFRA_ERROR, cost_usd=0.05),
    row(Y, 2, origin="human", independent=False),
    row("suite/weak", weak_oracle="returns shapes", speedup=9.0, provenance=MI300X),
)
"""Two sessions of one method on two tasks, and an attempt of each kind that accuracies leave out."""


def test_sample_is_the_best_attempt_of_each_task_of_each_session() -> None:
    section = table("overall", *STUDY)
    (overall,) = cells(section)
    assert (overall["n"], overall["call"], overall["exec"]) == ("4", "100.00 %", "75.00 %")
    assert overall["speedup"] == f"{(2 * 8 * 2) ** (1 / 3):.2f}x"
    assert overall["GEAK mean"] == "4.00x"
    assert "Tasks: 2 of suite." in section.sentences
    assert section.sentences[-2:] == (
        "Speedups are against triton.",
        "Left out: 1 unsupported, 1 our failure, 1 kernel of a person, 1 weak oracle.",
    )


def test_best_attempt_is_the_first_of_the_highest_rank_that_no_person_rejected() -> None:
    rows = (
        wrong(),
        timed(number=2, speedup=1.5),
        timed(number=3, speedup=1.5),
        timed(number=4, speedup=9.0, rejected=True),
    )
    (line,) = cells(table("winners", *rows))
    assert (line["attempt"], line["speedup"]) == (rows[1].attempt, "1.50x")


def test_task_is_called_if_any_of_its_attempts_that_no_person_rejected_ran() -> None:
    def call(second: AttemptRow) -> str:
        first = row(X, verdict=Verdict.CALL_ERROR, place=(1.0,))
        return cells(table("overall", first, second))[0]["call"]

    assert call(wrong(number=2, place=(0.0,))) == "100.00 %"
    assert call(wrong(number=2, rejected=True)) == "0.00 %"


def test_labels_of_the_plan_name_methods_and_models() -> None:
    rows = (
        timed(speedup=2.0, label="Ours", model_label="Small"),
        timed(session="t", speedup=2.0, label="Ours"),
    )
    lines = cells(table("overall", *rows))
    assert [(line["method"], line["model"]) for line in lines] == [("Ours", "Small"), ("Ours", "m")]
    shown = cells(table("winners", timed(speedup=2.0, label="Ours", reference_shown=True)))
    assert shown[0]["method"] == "Ours, reference shown"


def test_coverage_names_the_size_of_the_suite() -> None:
    rows = (timed(speedup=2.0), timed("other/z", speedup=2.0))
    section = table("overall", *rows, kinds={X: TaskKind(of_suite=184)})
    assert "Tasks: 1 of other, 1 of 184 of suite." in section.sentences


def test_interval_of_exec_is_over_tasks_not_sessions() -> None:
    """Ten sessions of one task say no more about other tasks than one session does."""
    chains = [timed(session=f"s{number}", speedup=2.0) for number in range(10)]
    (of_ten,), (of_first,) = cells(table("overall", *chains)), cells(table("overall", chains[0]))
    assert of_ten["n"] == "10"
    assert of_ten["exec 95 %"] == of_first["exec 95 %"] == "[20.7, 100.0]"


def test_task_that_people_rejected_is_named() -> None:
    rows = (timed(speedup=2.0), timed(Y, speedup=3.0, rejected=True), timed(Y, session="t", speedup=4.0))
    for name in ("overall", "winners", "fast"):
        assert table(name, *rows).sentences[-1] == "Left out: 1 task with only rejected attempts."


def test_means_have_one_hardware_and_the_devices_all() -> None:
    rows = (timed(speedup=2.0), timed(Y, speedup=2.0), timed(session="t", speedup=3.0, provenance=H100))
    (overall,) = cells(table("overall", *rows))
    assert overall["speedup"] == "2.00x"
    assert table("overall", *rows).sentences[-1] == (
        "Left out: from means, 1 speedup of other hardware or software."
    )
    devices = {line["hardware"]: (line["n"], line["speedup"]) for line in cells(table("devices", *rows))}
    assert devices == {"MI300X": ("2", "2.00x"), "H100": ("1", "3.00x")}
    across = cells(table("hardware", *rows))
    assert across == [{"task": X, "MI300X 6.10": "2.00x", "H100 550": "3.00x", "highest/lowest": "1.50x"}]


def test_groups_are_shown_only_if_they_differ() -> None:
    kinds = {X: TaskKind("Fusion", 2), Y: TaskKind("Math", 4)}
    rows = (timed(speedup=2.0), wrong(Y))
    by_difficulty = cells(table("difficulty", *rows, kinds=kinds))
    assert [(line["difficulty"], line["exec"]) for line in by_difficulty] == [
        ("2", "100.00 %"),
        ("4", "0.00 %"),
    ]
    by_category = table("categories", *rows, kinds=kinds)
    assert [line["category"] for line in cells(by_category)] == ["Fusion", "Math"]
    assert "category 100.00 %, method 0.00 %, together 100.00 %" in by_category.sentences[2]
    for name in ("difficulty", "categories", "modules", "shots", "suites"):
        assert not table(name, *rows).rows
    ablated = (*rows, timed(session="t", without=("one-shot", "optimizer"), speedup=1.0))
    modules = cells(table("modules", *ablated))
    assert [(line["one-shot"], line["optimizer"], line["n"]) for line in modules] == [
        ("off", "off", "1"),
        ("on", "on", "2"),
    ]
    assert [line["shots"] for line in cells(table("shots", *ablated))] == ["0-shot", "1-shot"]


def test_iterations_are_cumulative_and_the_band_is_over_sessions() -> None:
    elsewhere = [timed(task, session="u", speedup=9.0, provenance=H100) for task in (X, Y)]
    assert table("iterations", *STUDY, *elsewhere).plots == table("iterations", *STUDY).plots
    section = table("iterations", *STUDY)
    first, second = cells(section)
    assert (first["exec"], second["exec"]) == ("50.00 %", "75.00 %")
    assert (first["tokens a task"], second["tokens a task"]) == ("1,000", "1,500")
    plots = [plot for plot in section.plots if isinstance(plot, Plot)]
    assert [plot.x for plot in plots] == ["tokens a task", "US dollars a task"]
    start, first_point, last_point = plots[0].curves[0].points
    assert start == (0, 1, 1, 1)
    assert first_point == (
        1000,
        pytest.approx(16**0.25),
        pytest.approx(2**0.5),
        pytest.approx(8**0.5),
    )
    assert last_point == (1500, pytest.approx(32**0.25), pytest.approx(2**0.5), pytest.approx(4))
    assert (first["reached"], second["reached"]) == ("2.00x", "2.38x"), "geometric means over the four tasks"


def test_speedup_at_k_is_unknown_if_a_correct_kernel_was_not_timed() -> None:
    rows = [wrong(), timed(number=2, speedup=2.0), wrong(instance=2)]
    assert [line["speedup@k"] for line in cells(table("pass", *rows))] == ["1.00x", "2.00x"]
    assert "speedup@k" not in cells(table("pass", *rows, row(instance=3), row(instance=4)))[0]


def test_fast_p_is_unknown_if_a_winner_was_not_timed() -> None:
    (line,) = cells(table("fast", timed(speedup=2.0), wrong(Y)))
    assert (line["fast_1"], line["fast_2"]) == ("50.00 %", "0.00 %")
    assert cells(table("fast", timed(speedup=2.0), row(Y)))[0].keys().isdisjoint({"fast_1", "fast_2"})


def test_winners_are_the_fastest_over_all_sessions() -> None:
    section = table("winners", *STUDY)
    assert [
        (line["task"], line["speedup"], line["solved"], line["sessions"], line["session"])
        for line in cells(section)
    ] == [(Y, "8.00x", "2", "2", "s"), (X, "2.00x", "1", "2", "s")]
    assert [name for name, _ in section.plots[0].speeds] == [Y, X]


def test_winner_of_sessions_that_tie_is_the_earlier_as_in_the_best_of_all() -> None:
    tie = (2.0, 70.0)
    faster_in_its_noise = timed(speedup=2.004, session="second", place=tie)
    section = table("winners", faster_in_its_noise, timed(speedup=2.0, session="first", place=tie))
    assert [line["session"] for line in cells(section)] == ["first"]


def test_failures_are_counted_by_stage_class_and_cheat() -> None:
    refused = {"verdict": Verdict.REJECTED, "error": "no_launch", "stage": "integrity"}
    rows = (
        timed(speedup=2.0), wrong(), wrong(Y), row(Y, **refused), row(Y, session="t", model="n", **refused),
    )  # fmt: skip
    stages = {line["model"]: line for line in cells(table("stages", *rows))}
    assert (stages["m"]["n"], stages["m"]["execution"], stages["m"]["timing"]) == ("4", "50.00 %", "25.00 %")
    errors = [line["class of error"] for line in cells(table("errors", *rows)) if line["model"] == "m"]
    assert errors == ["mismatch", "-", "no launch"], "the most frequent first"
    refusals = table("refusals", *rows)
    assert cells(refusals) == [{"kind": "no launch", "m": "1", "n": "1"}]
    assert "n, the judged attempts of each model: m 4, n 1." in refusals.sentences[0]


def test_both_protocols_are_compared_by_candidate() -> None:
    rows = (
        timed(speedup=2.0, source_sha256="a"),
        wrong(source_sha256="b"),
        wrong(source_sha256="c"),
        wrong(source_sha256="not judged"),
    )
    originals = {
        CandidateOf(X, "a"): "passes",
        CandidateOf(X, "b"): "passes",
        CandidateOf(X, "c"): "unsupported",
    }
    section = table("protocols", *rows, originals=originals)
    (line,) = cells(section)
    assert (line["n"], line["correct by both"], line["by the original alone"]) == ("2", "1", "1")
    assert section.sentences[-1] == "Left out: 2 attempts without a verdict by both."


def test_verdicts_by_the_original_protocol_are_read_from_the_files_of_a_suite(tmp_path: Path) -> None:
    file = recorded_folder(tmp_path / "suites.toml", "suite") / "original-cpu.jsonl"
    result = PredictionResult(
        X, "x.py", 1, ORIGINAL, "cpu", "differs", call=True, execution=False, source="a = 1"
    )
    lines = ResultLines(file, PredictionResult, lambda kept: kept.task)
    lines.add(result)
    lines.add(msgspec.structs.replace(result, verdict="passes", execution=True))
    lines.add(msgspec.structs.replace(result, protocol=WAVEDECK, verdict="wrong"))
    with file.open("ab") as torn:
        torn.write(b'{"task": "suite/x", "proto')
    digest = hashlib.sha256(b"a = 1").hexdigest()
    verdicts = original_verdicts(tmp_path / "suites.toml", "suite")
    assert verdicts == {CandidateOf(X, digest): "passes"}, "the newest line counts"


def test_report_without_attempts_says_so() -> None:
    assert PAGES["table"](rows_document(RowSet(()))) == "attempts  none was judged yet"


def test_copy_of_the_own_kernel_is_found() -> None:
    report = report_of(fold(measured()))
    source = report.winners[0].best.source or ""
    renamed = source.replace("softmax_kernel", "rows_kernel").replace("cols", "places")
    (alike, *_) = likenesses([report], {"starter/softmax": renamed})
    assert (alike.golden, alike.example) == (1.0, None)
    section = table("contamination", likenesses=(alike,))
    (line,) = cells(section)
    assert (line["to own kernel, most"], line["copies of own kernel"]) == ("1.00", "1")


def test_cost_of_a_solved_task_has_the_failed_attempts_in_it() -> None:
    (line,) = cells(table("cost", *STUDY))
    assert (line["n"], line["solved"], line["attempts"]) == ("4", "3", "10")
    assert (line["tokens"], line["cost"], line["cost a solved task"]) == ("6,000", "$0.70", "$0.23")


def whole() -> Document:
    rows = RowSet(STUDY, {X: TaskKind("Fusion", 2), Y: TaskKind("<b>&", 4)})
    return rows_document(rows)


def test_every_format_of_the_tables_has_the_same_cells() -> None:
    document = whole()
    pages = {form: PAGES[form](document) for form in ("table", "md", "html")}
    data = {entry["table"]: entry["rows"] for entry in document_data(document)["tables"]}
    for section in document.sections:
        columns, rows = section.printed_cells()
        alone = Document(section.title, {}, (section,))
        printed = list(csv.reader(io.StringIO(as_csv(alone))))
        assert printed[0] == [column.title for column in columns]
        for line, texts, values in zip(rows, printed[1:], data[section.name], strict=True):
            assert "| " + " | ".join(inline(cell.text) for cell in line) + " |" in pages["md"]
            for cell, text, value in zip(line, texts, values.values(), strict=True):
                assert cell.text in pages["table"]
                assert f">{html.escape(cell.text)}</td>" in pages["html"]
                assert text == ("" if value is None else str(value))
                if cell.value is not None:
                    assert math.isclose(float(text), cell.value)
