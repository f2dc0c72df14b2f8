"""Words for margins, exams and speedups of correct kernels; rounding is never in favour of the kernel."""

from __future__ import annotations

import msgspec
import pytest

from engine.prompting.figures import achieved
from harness import Basis, Evaluation, Fact, Latency, Margin
from sessions import Home
from sessions import recorded_example as example
from sessions.catalog import session_state
from sessions.events import WinnerMeasured
from suites import Case, Distribution, Tolerance, load_task
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.judged_attempts import examine, judged_attempt
from tui.facts.evaluation.certainty import (
    confirmed_words,
    exam_sentence,
    speed_words,
    tolerance_words,
    used_share,
    worst_first,
)
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.spread import measured_words
from tui.facts.evaluation.task_cases import allowed, tolerances_of
from tui.facts.evaluation.times import remarks
from tui.facts.evaluation.verdict import headline, refusal_words, verdict_facts
from tui.print.plain import tables_text


@pytest.mark.parametrize(
    ("used", "words"), [(0.0, "0 %"), (0.0001, "1 %"), (0.374, "38 %"), (0.995, "100 %"), (7.5, "750 %")]
)
def test_used_share_of_a_tolerance_is_rounded_up(used: float, words: str) -> None:
    assert used_share(used) == words


def page(evaluation: Evaluation) -> str:
    return tables_text(evaluation_tables(evaluation))


def with_margins(*margins: Margin) -> Evaluation:
    return msgspec.structs.replace(correct(speedup=1.5), margins=margins)


def test_headline_of_a_correct_kernel_has_the_smallest_margin() -> None:
    evaluation = with_margins(
        Margin("a", "y", "elementwise", 0.1, (0,)),
        Margin("a", "scale", "cosine", 0.7),
        Margin("b", "y", "elementwise", 0.3, (1,)),
    )
    assert [margin.used for margin in worst_first(evaluation)] == [0.7, 0.3, 0.1]
    assert headline(evaluation, baseline="triton") == (
        "correct, 1.50x against triton; tolerance used 70 % (case a)"
    )
    lines = page(evaluation).splitlines()
    begin = lines.index("tolerance used, worst first")
    assert [row.split() for row in lines[begin + 2 : begin + 5]] == [
        ["70", "%", "a", "scale", "cosine"],
        ["30", "%", "b", "y", "elementwise", "at", "[1]"],
        ["10", "%", "a", "y", "elementwise", "at", "[0]"],
    ]


def test_exact_outputs_have_no_margin_and_unknown_margins_are_not_shown() -> None:
    exact = with_margins(Margin("a", "y", "exact", 0.0), Margin("b", "y", "exact", 0.0))
    assert tolerance_words(exact) == "all outputs exact"
    assert headline(correct()) == "correct"
    assert "tolerance used" not in page(correct())
    assert "exact" not in page(msgspec.structs.replace(failed(), margins=(Margin("a", "y", "exact", 2.0),)))


def test_page_lists_proof_and_evidence_separately() -> None:
    facts = (Fact("launches", "k 6", Basis.EVIDENCE), Fact("replay", "agrees", Basis.PROOF))
    lines = page(msgspec.structs.replace(correct(), facts=facts)).splitlines()
    proof = next(index for index, row in enumerate(lines) if row.startswith("proof ("))
    evidence = next(index for index, row in enumerate(lines) if row.startswith("evidence ("))
    assert lines[proof + 1] == "  replay  agrees"
    assert lines[evidence + 1] == "  launches  k 6"


def test_session_list_separates_confirmed_from_not_examined() -> None:
    assert confirmed_words((), None) == "-"
    assert confirmed_words(("a", "b"), None) == "not examined"
    assert confirmed_words(("a", "b"), ()) == "0/2"
    assert confirmed_words(("a", "b"), ("b",)) == "1/2"


def test_tolerance_words_list_each_key_and_differing_outputs() -> None:
    assert allowed(Tolerance()) == "exact"
    summed = Tolerance(rtol=1e-3, ulps=1.0, accumulation=4.0, reduction="k")
    assert allowed(summed) == "rtol 0.001, ulps 1, accumulation 4 over k"
    task = load_task("flip")
    loose = msgspec.structs.replace(
        task.outputs[0], name="loose", tolerances={"float32": Tolerance(atol=0.5)}
    )
    case = Case("c", "float32", {"rows": 1}, {"rows": 1}, Distribution.STANDARD)
    assert tolerances_of(task, case) == "exact"
    both = msgspec.structs.replace(task, outputs=(*task.outputs, loose))
    assert tolerances_of(both, case) == f"{task.outputs[0].name}: exact; loose: atol 0.5"


def in_part() -> Evaluation:
    row = Latency("0", "fp32", 1.0, 1.002, 0.998, (0.99, 1.01), "tape", against="triton")
    return msgspec.structs.replace(
        correct(speedup=0.998), speedup_geomean=0.998, latency=(row,), not_timed=("fp16", "bf16")
    )


def test_notes_on_a_case_are_on_the_page() -> None:
    evaluation = in_part()
    noted = msgspec.structs.replace(
        evaluation.latency[0], notes=("medians are known to 0.8%",), floor_ms=0.01
    )
    assert "fp32: medians are known to 0.8%" in page(msgspec.structs.replace(evaluation, latency=(noted,)))


def test_speedup_of_partly_timed_kernel_names_its_cases_on_every_page() -> None:
    evaluation = in_part()
    words = "1.00x [1.00, 1.00]; 1.00x [0.99, 1.01] exact, 1 of 3"
    assert headline(evaluation) == f"correct, {words} against triton"
    text = page(evaluation)
    assert "1002" in text, "row of the timed case"
    covered = "1 of 3 cases have a ratio, the others count as 1.00"
    assert f"{covered}; without a latency: fp16, bf16" in text
    note = "timing was not whole: 2 of 3 cases have no time: 603 samples were disturbed"
    disturbed = "603 samples were disturbed"
    why = msgspec.structs.replace(evaluation, notes=(note,), why_not_timed=disturbed)
    assert f"{covered}; without a latency ({disturbed}): fp16, bf16" in page(why)
    assert achieved(evaluation).startswith(
        "1.00x [1.00, 1.00] the baseline by geometric mean (cases with an exact ratio alone: 1.00x [0.99, 1.01]"
    )
    assert measured_words(WinnerMeasured(attempt="a#1/1", device="0", evaluation=evaluation)) == (
        f"GPU 0: {words} against triton"
    )


def test_speed_found_stands_beside_the_confirmed_one_only_over_the_same_cases() -> None:
    attempt = judged_attempt(correct(speedup=5.56), "vector_add#1/1")
    examine(attempt, msgspec.structs.replace(correct(speedup=5.4), exam=True))
    assert speed_words(attempt) == "found 5.56x, confirmed 5.40x"
    examine(attempt, msgspec.structs.replace(in_part(), exam=True))
    assert speed_words(attempt).startswith("confirmed 1.00x")
    assert exam_sentence(attempt, None).startswith("confirmed by exam: confirmed 1.00x")


def test_wrong_kernel_of_the_example_shows_that_it_launches_nothing_and_which_case_refused_it(
    home: Home,
) -> None:
    state = session_state(home, example.NAME)
    first, _ = verdict_facts(state.attempt("softmax#2/1"), state.instances["softmax#2"])
    assert [cell.text for cell in first[:3]] == [
        "WRONG",
        "interpreter: no Triton kernel was launched",
        "case hidden: rough values, fp32-outlier",
    ]
    assert refusal_words(state.attempt("softmax#2/1").evaluation).startswith(
        "The judge also ran it in Triton's interpreter: case fp32-narrow launched no Triton kernel."
    )


def test_time_back_to_back_that_contradicts_the_outcome_has_a_remark(home: Home) -> None:
    exam = session_state(home, example.NAME).attempt("softmax#1/2").exam
    contradicted = [timing.case for timing in exam.latency if "back to back" in " ".join(remarks(timing))]
    assert contradicted == ["fp32"]
