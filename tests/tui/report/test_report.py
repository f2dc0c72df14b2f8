"""Report of a session: winners with speedups over cases, what changed, estimates apart, and every format."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import msgspec
import pytest

from harness import Latency, Verdict
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import Provenance
from sessions import events as ev
from sessions.events import AnyEvent
from sessions.state.folding import fold
from tests.support.sessions.journals import RIGHT_SOURCE, EventLog, finished
from tests.support.sessions.measured_sessions import (
    empty,
    estimated,
    measured,
    softmax_cases,
    timed,
    unsolved,
)
from tui.facts.attempt import gain_words
from tui.facts.attention import waiting_words
from tui.facts.report import SessionReport, report_of
from tui.facts.report.attempt_sections import attempt_sections, changes_of
from tui.facts.report.bars import bars_of, scale_end
from tui.facts.report.count_sections import stage_counts, task_costs, verdict_counts
from tui.facts.report.document import Document
from tui.facts.report.reading import ReportReader
from tui.facts.report.section import NamedSpeed
from tui.facts.report.winner_sections import winner_sections
from tui.print.report import as_html, as_markdown, as_text


def report(events: list[AnyEvent]) -> SessionReport:
    """Return the report of these events."""
    return report_of(fold(events))


def document(*reports: SessionReport) -> Document:
    """Return the whole report of these sessions."""
    return ReportReader(reports, None).document(kernels=True)


def test_winner_has_the_mean_with_and_without_bounds() -> None:
    winner, even = report(measured()).winners
    assert (winner.attempt, even.attempt) == ("softmax#1/3", "rms_norm#1/1")
    cases = [case for case in softmax_cases() if case.speedup is not None]
    speed = winner.speed
    assert speed.value == pytest.approx(math.prod(case.speedup or 0 for case in cases) ** (1 / 6))
    assert (speed.sign, speed.cases, speed.all_cases) == (">=", 5, 6)
    assert speed.interval is None, "a bound has no interval"
    assert (speed.exact.cases, speed.exact.low, speed.exact.high) == (
        4,
        pytest.approx(1.784, abs=0.001),
        pytest.approx(1.819, abs=0.001),
    )
    sections = winner_sections(report(measured()))
    cells = {cell.text for section in sections for row in section.rows for cell in row.cells}
    assert {"84-97 %", "accepted", "waits", "starter/softmax/kernel.py"} <= cells
    assert (winner.is_chosen, even.best.waiting) == (True, True)


def test_case_without_a_time_is_shown_and_counts_as_one() -> None:
    events = [
        msgspec.structs.replace(
            event, evaluation=msgspec.structs.replace(event.evaluation, speedup=None, not_timed=("fp64",))
        )
        if isinstance(event, ev.AttemptJudged) and event.attempt == "rms_norm#1/1"
        else event
        for event in measured()
    ]
    speed = report(events).winners[-1].speed
    assert (speed.cases, speed.all_cases) == (2, 3)
    assert "not timed" in as_text(document(report(events)))


def test_winner_that_failed_its_exam_is_not_to_be_used() -> None:
    assert "Do not use vector_add#1/1: wrong on the cases of the exam." in as_text(
        document(report(finished()))
    )


def test_change_counts_lines_and_the_gain_on_its_base() -> None:
    changes = {change.attempt.attempt: change for change in changes_of(fold(measured()))}
    best = changes["softmax#1/3"]
    assert (best.lines, best.is_best) == ((3, 2), True)
    assert best.gain == pytest.approx(1.06 ** (4 / 6) - 1), "four of six cases are exact"
    assert (changes["softmax#1/2"].gain, changes["softmax#1/1"].lines) == (None, None)
    (section,) = attempt_sections(report(measured()))
    row = next(row for row in section.rows if row.key == "softmax#1/1")
    assert row.cells[-1].text.startswith("output y of case")
    (best_row,) = (row for row in section.rows if row.key == "softmax#1/3")
    assert "5 of 6" in [cell.text for cell in best_row.cells], "one case has no ratio and counts as 1.00"


def test_report_says_that_attempts_of_nearly_the_same_speed_tie() -> None:
    def text(faster: float) -> str:
        log = EventLog()
        log.open(devices=("2",))
        log.attempt("softmax#1/1", RIGHT_SOURCE, timed(softmax_cases()))
        log.attempt("softmax#1/2", RIGHT_SOURCE, timed(softmax_cases(scale=1 / faster)))
        return as_text(document(report(log.events)))

    tie = "Speedups within 1 % tie: the earlier attempt stays the best."
    assert tie in text(1.003)
    assert tie in text(1.0)
    assert tie in text(0.995)
    assert tie not in text(1.2)


def test_report_names_the_case_that_carries_the_mean() -> None:
    def cells(narrow: float) -> str:
        log = EventLog()
        first, *others = softmax_cases()[:4]
        case = msgspec.structs.replace(first, case="tiny", speedup=narrow, bound=Bound.NONE)
        log.attempt("softmax#1/1", RIGHT_SOURCE, timed((case, *others)))
        rows = (row for section in winner_sections(report(log.events)) for row in section.rows)
        return "\n".join(cell.text for row in rows for cell in row.cells)

    assert "tiny has 80.00x; the mean without it: 1.76x (3 cases)" in cells(80.0)
    assert "the mean without it" not in cells(2.0)


def test_title_of_the_session_is_above_its_report() -> None:
    text = as_text(document(report([*measured(), ev.SessionTitled(title="softmax at last")])))
    assert text.startswith("title     softmax at last\nsession   2026")


def test_winners_of_different_drivers_share_no_mean_and_no_gain_on_the_base() -> None:
    events = [
        msgspec.structs.replace(
            event,
            evaluation=msgspec.structs.replace(
                event.evaluation, provenance=Provenance(product="MI300X", driver=event.attempt[-1])
            ),
        )
        if isinstance(event, ev.AttemptJudged)
        else event
        for event in measured()
    ]
    whole = report(events)
    assert whole.hardware == ("MI300X, driver 3", "MI300X, driver 1")
    assert {change.gain for change in changes_of(whole.state)} == {None}
    text = as_text(document(whole))
    assert "hardware  MI300X, driver 3; MI300X, driver 1" in text
    assert "No figure to base: other hardware or software timed the base." in text
    assert "Left out: from means, " in text
    attempt = whole.state.attempt("softmax#1/3")
    assert gain_words(attempt, whole.state.instances["softmax#1"]) == "apart"
    assert "x, not compared with its best: other" in waiting_words(whole.state, attempt, 0.0)


def test_stages_verdicts_and_cost_are_counted() -> None:
    state = fold(measured())
    assert [(stage.reached, stage.passed) for stage in stage_counts(state)] == [(6, 6)] * 3 + [
        (6, 4),
        (4, 4),
        (4, 4),
    ]
    assert [(count.verdict, count.error, len(count.attempts)) for count in verdict_counts(state)] == [
        (Verdict.CORRECT, "", 4),
        (Verdict.WRONG, "mismatch", 2),
    ]
    costs = {cost.task: cost for cost in task_costs(state)}
    assert costs["starter/softmax"].to_first_correct == 2
    assert costs["starter/softmax"].spent.cost_usd == pytest.approx(0.93)
    assert costs["starter/matmul"].to_first_correct is None


def test_outlier_does_not_shrink_the_bars_of_the_others() -> None:
    fast, even = report(measured()).winners
    outlier = NamedSpeed("fast", msgspec.structs.replace(fast.speed, value=40.0))
    speeds = [outlier, *(NamedSpeed(name, even.speed) for name in "abc")]
    assert scale_end(speeds) < 2
    assert bars_of(speeds, 40)[0].endswith("//")


def test_every_format_says_the_same() -> None:
    whole = document(report(measured()))
    text, page, markup = as_text(whole), as_markdown(whole), as_html(whole)
    for section in whole.sections:
        assert section.title in text
        assert f"## {section.title}" in page
        for row in section.printed()[1]:
            assert "| " + " | ".join(row) + " |" in page
            assert all(cell in text for cell in row)
    assert len(re.findall("<tr>", markup)) > 40
    titles = [line for line in page.splitlines() if line.startswith("## ")]
    assert titles[0] == "## Winners"


def test_html_and_markdown_are_safe_pages() -> None:
    events = [
        msgspec.structs.replace(event, strategy="<script>alert(1)</script>")
        if isinstance(event, ev.CandidateProposed)
        else event
        for event in measured()
    ]
    markdown = as_markdown(document(report(events)))
    assert markdown.count("<script>") == markdown.count("\\<script>") > 0, "shown, and escaped"
    page = as_html(document(report(events)))
    assert page.count("<script") == 1, "the page's own script, which sorts tables"
    assert "&lt;script&gt;" in page
    assert not re.search(r"src=|href=\"[^#]|url\((?!#)|@import", page)
    assert "default-src 'none'" in page, "a browser then loads nothing, whatever a kernel says"


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (empty, ("There is no winner. No attempt was judged yet.",)),
        (unsolved, ("There is no winner. No task is solved.", "wrong: output y of case fp16 outliers")),
        (
            estimated,
            (
                "not timed (no GPU)",
                "no GPU judged it",
                "traffic 1.",
                "registers",
                "Bytes of the cases",
                "moved/needed",
            ),
        ),
    ],
)
def test_states_without_a_speedup_have_words(
    events: Callable[[], list[AnyEvent]], words: tuple[str, ...]
) -> None:
    text = as_text(document(report(events())))
    assert all(phrase in text for phrase in words)
    assert not re.search(r"(?<!traffic )\d\.\d\dx", text), "traffic is never in the place of a speedup"


def test_words_of_a_model_have_no_markdown() -> None:
    events = estimated()
    marked = [
        msgspec.structs.replace(event, strategy="## Plan\n**Limits.** 2 ** k rows of `x__y`")
        if isinstance(event, ev.CandidateProposed)
        else event
        for event in events
    ]
    text = as_text(document(report(marked)))
    assert "Plan Limits." in text
    assert "**Limits" not in text
    assert "x__y" in text


def test_sessions_are_merged_fastest_first_with_a_caution_for_other_baselines() -> None:
    def of_session(name: str, against: str, scale: float) -> list[AnyEvent]:
        def other(case: Latency) -> Latency:
            return msgspec.structs.replace(case, against=against)

        evaluation = timed(tuple(map(other, softmax_cases(scale))))
        return [
            msgspec.structs.replace(event, session=name)
            if isinstance(event, ev.SessionStarted)
            else msgspec.structs.replace(event, evaluation=evaluation)
            if isinstance(event, ev.AttemptJudged) and event.attempt == "softmax#1/3"
            else event
            for event in measured()
        ]

    slow, fast = report(of_session("first", "triton", 1.2)), report(of_session("second", "eager", 1.0))
    page = as_markdown(document(slow, fast))
    assert "## Winners of all sessions" in page
    assert "Compare only rows with the same baseline and the same device." in page
    winner = next(line for line in page.splitlines() if line.startswith("| softmax | "))
    assert "| second |" in winner, "the faster one"


def test_session_without_an_attempt_that_counts_says_why_it_has_no_metrics() -> None:
    events = [
        msgspec.structs.replace(
            event, evaluation=msgspec.structs.replace(event.evaluation, weak_oracle="accepts zeros")
        )
        if isinstance(event, ev.AttemptJudged)
        else event
        for event in measured()
    ]
    assert document(report(events)).facts["metrics"] == "Left out: 6 weak oracle."
    assert "metrics" not in document(report(measured())).facts
