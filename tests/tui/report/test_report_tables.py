"""Tables of a report over the rows of sessions: what they count, what they leave out, and the same cells in each format."""

from __future__ import annotations

import csv
import hashlib
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
from tui.facts.report.tables import TABLES, RowSet, tables_of
from tui.facts.report.tables.contamination import likenesses
from tui.print.markdown_text import inline
from tui.print.report import PAGES, document_data, table_csv
from tui.print.report.latex import escaped

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
    assert section.sentences[-2:] == (
        "Speedups are against triton.",
        "Left out: 1 unsupported, 1 our failure, 1 kernel of a person, 1 weak oracle.",
    )


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
    assert "category 100.00 %, method 0.00 %, together 100.00 %" in by_category.sentences[1]
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
        pytest.approx((8**0.5 + 2**0.5) / 2),
        pytest.approx(2**0.5),
        pytest.approx(8**0.5),
    )
    assert last_point == (1500, pytest.approx((4 + 2**0.5) / 2), pytest.approx(2**0.5), pytest.approx(4))


def test_pass_at_k_takes_instances_as_samples() -> None:
    rows = [wrong(), timed(number=2, speedup=2.0), wrong(instance=2)]
    assert [(line["k"], line["pass@k"], line["speedup@k"]) for line in cells(table("pass", *rows))] == [
        ("1", "50.00 %", "1.00x"),
        ("2", "100.00 %", "2.00x"),
    ]


def test_winners_are_the_fastest_over_all_sessions() -> None:
    section = table("winners", *STUDY)
    assert [
        (line["task"], line["speedup"], line["sessions"], line["session"]) for line in cells(section)
    ] == [(Y, "8.00x", "2/2", "s"), (X, "2.00x", "1/2", "s")]
    assert [winner.task for winner in section.plots[0].winners] == [Y, X]


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
    assert cells(table("refusals", *rows)) == [{"kind": "no launch", "m": "1 (25.00 %)", "n": "1 (100.00 %)"}]


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
    assert (line["n"], line["correct by both"], line["by the original alone"]) == (
        "2",
        "1 (50.00 %)",
        "1 (50.00 %)",
    )
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
    return rows_document(RowSet(STUDY, {X: TaskKind("Fusion", 2), Y: TaskKind("<b>&", 4)}))


def test_every_format_of_the_tables_has_the_same_cells() -> None:
    document = whole()
    assert [section.name for section in document.sections] == [
        section.name
        for section in tables_of(RowSet(STUDY, {X: TaskKind("Fusion", 2), Y: TaskKind("<b>&", 4)}))
    ]
    pages = {form: PAGES[form](document) for form in ("table", "md", "tex", "html")}
    data = {entry["table"]: entry["rows"] for entry in document_data(document)["tables"]}
    for section in document.sections:
        columns, rows = section.printed_cells()
        printed = list(csv.reader(io.StringIO(table_csv(section))))
        assert printed[0] == [column.title for column in columns]
        for line, texts, values in zip(rows, printed[1:], data[section.name], strict=True):
            assert "| " + " | ".join(inline(cell.text) for cell in line) + " |" in pages["md"]
            for cell, text, value in zip(line, texts, values.values(), strict=True):
                assert cell.text in pages["table"]
                assert escaped(cell.text) in pages["tex"]
                assert (
                    f">{cell.text.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')}</td>"
                    in (pages["html"])
                )
                assert text == ("" if value is None else str(value))
                if cell.value is not None:
                    assert math.isclose(float(text), cell.value)


def test_latex_prints_every_sign() -> None:
    assert escaped(r"`!` a_b & 50 % >= 2 <3 #1 ~ \x {y} $ ^ ≈") == (
        r"'!' a\_b \& 50 \% $\geq$ 2 $<$3 \#1 \textasciitilde{} \textbackslash{}x \{y\} \$ \textasciicircum{} "
        r"\textbackslash{}u2248"
    )
    page = PAGES["tex"](whole())
    assert page.count("\\begin{tabular}") == page.count("\\bottomrule") == len(whole().sections)
    assert "\\caption{Overall}\\label{tab:overall}" in page
