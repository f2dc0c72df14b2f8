"""One fixture state on every surface: speed, gain, findings, exam, accepted kernel and counts say the same everywhere."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
import pytest

from engine.agents.answers import best_answer, encoded
from engine.prompting.agent_prompt import judged_of
from engine.prompting.figures import achieved
from engine.prompting.prompting import optimize_prompt
from harness import Evaluation, Verdict
from harness.wire.results.evaluation import Finding, FullSize
from harness.wire.results.latency import Bound
from sessions import SessionState, fold
from sessions import events as ev
from sessions.best_ever import BestEver
from sessions.listing.description import summarise
from sessions.listing.info import Standing, info_of
from sessions.metrics.attempt_row import attempt_rows
from sessions.state.bests import measured_bests
from sessions.state.cases import case_rows
from sessions.state.speed import speed_of
from sessions.store.attempt_commits import attempt_message
from tests.support.engine.prompts import SETTING
from tests.support.engine.prompts import text as prompt_text
from tests.support.judge.evaluations import failed, judged, traffic
from tests.support.sessions import story
from tests.support.sessions.journals import FAST_SOURCE, RIGHT_SOURCE, EventLog, examined, timed_again
from tests.support.sessions.measured_sessions import softmax_cases, timed
from tui.actions.line import completions
from tui.cockpit.draw.lines import plain
from tui.cockpit.draw.verdict_lines import head_lines
from tui.cockpit.screens.agent.agent_head import head_line, strip_line
from tui.cockpit.screens.agent.page import PageSubject
from tui.cockpit.screens.agent.tabs import page_of
from tui.cockpit.screens.fleet import fleet_view
from tui.cockpit.screens.header import header_line
from tui.cockpit.screens.latency.captions import title_lines
from tui.cockpit.screens.latency.time_table import Shown, time_table
from tui.cockpit.screens.latency.timings import timings_of
from tui.cockpit.screens.report import report_view
from tui.cockpit.screens.review.evidence import evidence, evidence_title
from tui.commands.keep.sessions import USAGE, attempt_row, model_usage
from tui.commands.look.best import FIELDS as BEST_FIELDS
from tui.commands.look.show import verdict_lines
from tui.commands.look.status import FIELDS as STATUS_FIELDS
from tui.facts.attempt import gain_words
from tui.facts.attention import attention
from tui.facts.doing import doing
from tui.facts.evaluation import counted
from tui.facts.evaluation.certainty import certainty_words, exam_sentence, tolerance_words
from tui.facts.evaluation.page import evaluation_tables
from tui.facts.evaluation.verdict import headline, verdict_facts
from tui.facts.instance import FactsCache
from tui.facts.report import PANES, facts_of, report_of
from tui.facts.report.attempt_sections import attempt_sections, changes_of, decision_sections
from tui.facts.report.count_sections import task_costs
from tui.facts.report.document import Document
from tui.facts.report.reading import ReportReader
from tui.facts.report.tables import RowSet
from tui.facts.report.winner_sections import winner_sections
from tui.facts.session_fields import session_fields
from tui.facts.text_diff import compare_lines
from tui.facts.vocabulary import speed_style
from tui.print.plain import json_document, listing, tables_text
from tui.print.report import as_html, as_latex, as_markdown, as_text
from tui.print.summary import outcomes, summary

BEST = "softmax#1/2"
SPEED = ">= 2.24x"
EXACT = "1.80x [1.78, 1.82] exact, 4 of 6"
GAIN = "+4 %"


def session() -> SessionState:
    """Return a session with a bound, a case without a ratio, findings, three decisions and an attempt that counts nowhere."""
    log = EventLog()
    log.open(devices=("2",), review="manual")
    log.events[0] = story.changed(log.events[0], tasks=("starter/softmax",), instances=2)
    for instance in (1, 2):
        log.add(ev.InstanceStarted(task="starter/softmax", instance=instance), after_s=0.1)
    past_the_end = Finding("out_of_bounds", "reads 3 elements past the end of x", "ragged", 14)
    fast = msgspec.structs.replace(timed(softmax_cases()), findings=(past_the_end,))
    log.attempt("softmax#1/1", RIGHT_SOURCE, timed(softmax_cases(1.06)), price=0.2)
    log.attempt(
        BEST,
        FAST_SOURCE,
        fast,
        origin=ev.Origin.OPTIMIZE,
        base="softmax#1/1",
        strategy="One pass.",
        price=0.3,
    )
    log.attempt("softmax#2/1", RIGHT_SOURCE, timed(softmax_cases(1.5)), price=0.2)
    log.attempt("softmax#2/2", RIGHT_SOURCE, failed(Verdict.INFRA_ERROR), price=0.1)
    log.attempt("softmax#2/3", RIGHT_SOURCE, timed(softmax_cases(1.4)), price=0.1)
    log.exam(BEST, msgspec.structs.replace(examined(), task="starter/softmax"))
    log.add(ev.DecisionMade(attempt=BEST, accepted=True, why="reads once", by="ada"), after_s=9.0)
    log.add(ev.DecisionMade(attempt="softmax#2/1", accepted=True, why="simpler", by="kim"), after_s=9.0)
    log.add(ev.DecisionMade(attempt="softmax#2/3", accepted=False, why="reads twice", by="ada"), after_s=9.0)
    log.add(ev.WaitingForPerson(attempt=BEST), after_s=0.2)
    return fold(log.events)


def fleet(state: SessionState) -> str:
    cache = FactsCache()
    tasks = [fleet_view.task_facts("starter/softmax", cache.all(state))]
    _, table = fleet_view.fleet_table(tasks, 157, changes={}, worked_s=0.0)
    return " ".join(cell.text for cell in table.rows[0].cells)


def agent(state: SessionState) -> str:
    instance = state.instances["softmax#1"]
    head = head_lines(state.attempt(BEST), instance)
    return "\n".join([plain(strip_line(instance, state.attempt(BEST), 157)), *map(plain, head)])


def latency(state: SessionState) -> str:
    return "\n".join(map(plain, title_lines(state.attempt(BEST), 157)))


def review(state: SessionState) -> str:
    instance = state.instances["softmax#1"]
    return "\n".join(map(plain, evidence(state, state.attempt(BEST), instance, wall=None, width=157)))


def report_screen(state: SessionState) -> str:
    report = report_of(state)
    winners, *texts = winner_sections(report)
    shown = report_view.shown_rows(winners)
    rows = [" ".join(cell.text for cell in row.cells) for row in shown]
    cut = report_view.cut_cells(winners.columns, shown, BEST, 80)
    return "\n".join([*rows, *map(plain, report_view.detail_lines(BEST, cut, texts, 157))])


def printed_report(state: SessionState) -> str:
    return as_text(document(state))


def document(state: SessionState) -> Document:
    return ReportReader([report_of(state)], None).document(kernels=True)


def html(state: SessionState) -> str:
    return as_html(document(state)).replace("&gt;", ">")


def markdown(state: SessionState) -> str:
    return as_markdown(document(state))


def latex(state: SessionState) -> str:
    return as_latex(document(state)).replace(r"$\geq$", ">=")


def prompt(state: SessionState) -> str:
    return achieved(state.attempt(BEST).evaluation)


def commit(state: SessionState) -> str:
    return attempt_message(state.attempt(BEST))


def eval_line(state: SessionState) -> str:
    return headline(state.attempt(BEST).evaluation)


def best(state: SessionState) -> str:
    return listing(
        BEST_FIELDS, [BestEver("20261118-090000-geak-1a2b", measured) for measured in measured_bests(state)]
    )


def status(state: SessionState) -> str:
    return listing(
        STATUS_FIELDS, [info_of("20261118-090000-geak-1a2b", None, summarise(state), running=True)]
    )


def notices(state: SessionState) -> str:
    return "\n".join(concern.words for concern in attention(state, now_wall=0.0, health=None))


SURFACES: list[Callable[[SessionState], str]] = [
    fleet, agent, latency, review, report_screen, printed_report, html, markdown, latex, prompt, commit, eval_line, best,
    status, notices, summary,
]  # fmt: skip


@pytest.mark.parametrize("surface", SURFACES, ids=lambda surface: surface.__name__)
def test_every_surface_shows_the_speed_that_ranks(surface: Callable[[SessionState], str]) -> None:
    shown = surface(session())
    assert SPEED in shown.replace(">=2.24", ">= 2.24")
    if surface not in WHOLE_SESSION:
        single_cases = {f"{case.speedup:.2f}x" for case in softmax_cases() if case.speedup}
        figures = set(re.findall(r"(?<![\d.])\d+\.\d\dx", shown))
        assert figures <= {"2.24x", "1.80x", "12.16x", *single_cases}


WHOLE_SESSION = (fleet, review, printed_report, html, markdown, latex, report_screen)
"""Surfaces that also show the speeds of other attempts."""


@pytest.mark.parametrize(
    "surface",
    [agent, latency, review, report_screen, printed_report, html, markdown, latex, prompt, best, commit],
)
def test_surfaces_with_room_show_the_exact_cases_beside_it(surface: Callable[[SessionState], str]) -> None:
    assert EXACT in surface(session())


@pytest.mark.parametrize(
    "surface", [fleet, agent, review, report_screen, printed_report, html, eval_line, summary]
)
def test_findings_are_marked(surface: Callable[[SessionState], str]) -> None:
    assert re.search(r"!|1 finding|past the end of x", surface(session()))


def test_exam_and_tolerance_have_one_sentence_each() -> None:
    state = session()
    attempt, instance = state.attempt(BEST), state.instances["softmax#1"]
    exam, tolerance = exam_sentence(attempt, instance), tolerance_words(attempt.evaluation)
    for text in (review(state), certainty_words(attempt, instance)):
        assert exam in text
    for text in (review(state), agent(state), eval_line(state), certainty_words(attempt, instance)):
        assert tolerance in text
    for surface in (agent, latency, printed_report, report_screen, summary):
        assert str(attempt.confirmation) in surface(state)


def test_metrics_keep_the_bound_of_a_winner() -> None:
    (overall,) = (section for section in document(session()).sections if section.name == "overall")
    columns, (texts,) = overall.printed()
    cells = dict(zip([column.title for column in columns], texts, strict=True))
    assert cells["speedup"] == SPEED
    assert cells["GEAK mean"].startswith(">= ")


def test_case_has_the_same_times_on_the_printed_page_and_in_the_tabs() -> None:
    attempt = session().attempt(BEST)
    printed = tables_text(evaluation_tables(attempt.evaluation)).splitlines()
    for tab in ("verdict", "speed"):
        drawn = [plain(row).rstrip() for row in page_of(tab, PageSubject(attempt), 10_000)]
        rows = [row for row in drawn if row.startswith(attempt.evaluation.latency[0].case)]
        assert rows
        assert {f"  {row}" for row in rows} <= set(printed)


def test_gain_is_the_same_in_review_header_and_report() -> None:
    state = session()
    assert gain_words(state.attempt(BEST), state.instances["softmax#1"]) == GAIN
    assert f"own gain {GAIN}" in notices(state)
    change = next(change for change in changes_of(state) if change.attempt.attempt == BEST)
    assert change.gain == pytest.approx(0.04, abs=0.005)


def test_judged_attempts_are_counted_alike() -> None:
    state = session()
    info = info_of("s", None, summarise(state), running=True)
    assert info.state is Standing.RUNNING
    assert info.attempts == report_of(state).tally.judged == 4
    assert "4 judged, 1 not counted" in summary(state)
    cache = FactsCache()
    header = header_line(state, cache.all(state), name="s", status=(), concerns=(), width=200)
    assert "4 attempts" in plain(header)
    assert "4 judged, 100 % correct, 1 not counted" in printed_report(state)


def test_best_attempts_and_spending_are_the_same_everywhere() -> None:
    state = session()
    report = report_of(state)
    (outcome,) = outcomes(state)
    bests = {outcome.best.attempt, report.winners[0].attempt}
    assert bests == {BEST} == set(summarise(state).best.values())
    (cost,) = task_costs(state)
    assert (outcome.attempts, cost.attempts, report.tally.judged) == (4, 4, 4)
    assert cost.spent.cost_usd == pytest.approx(state.cost_usd)
    spent = facts_of(report)["spent"]
    assert spent in summary(state)
    assert spent in printed_report(state)


def test_of_attempts_that_tie_every_surface_names_the_earlier() -> None:
    log = EventLog()
    log.open(devices=("2",))
    log.events[0] = story.changed(log.events[0], tasks=("starter/softmax",), instances=2)
    for instance in (1, 2):
        log.add(ev.InstanceStarted(task="starter/softmax", instance=instance))
    faster_in_its_noise = timed(softmax_cases(0.999))
    log.attempt("softmax#1/1", RIGHT_SOURCE, timed(softmax_cases()))
    log.attempt("softmax#1/2", RIGHT_SOURCE, faster_in_its_noise)
    log.attempt("softmax#2/1", RIGHT_SOURCE, faster_in_its_noise)
    state = fold(log.events)
    first, (measured,) = state.attempt("softmax#1/1"), measured_bests(state)
    named = {
        measured.attempt,
        summarise(state).best["starter/softmax"],
        report_of(state).winners[0].attempt,
        outcomes(state)[0].best.attempt,
    }
    assert named == {"softmax#1/1"}
    assert " #1/1 " in fleet(state)
    shown = evidence(state, first, state.instances["softmax#1"], wall=None, width=157)
    assert "session's best: this" in "\n".join(map(plain, shown))


def test_decisions_are_counted_alike() -> None:
    state = session()
    report = report_of(state)
    assert facts_of(report)["people"].startswith("2 accepted, 1 rejected")
    assert len(decision_sections(report)[0].rows) == 3
    assert plain(report_view.summary_line(report, 157)).count("2 accepted, 1 rejected") == 1


def test_report_screen_has_the_cells_of_the_printed_report() -> None:
    state = session()
    report = report_of(state)
    on_screen = {section.title: section for pane in PANES.values() for section in pane(report)}
    for section in document(state).sections:
        if section.name:  # the cockpit loads no table over attempts
            continue
        assert on_screen[section.title].rows == section.rows
        shown = [[cell.text for cell in row.cells] for row in report_view.shown_rows(section)]
        printed = section.printed()[1]
        assert all(set(cells) <= set(texts) for cells, texts in zip(printed, shown, strict=True))


def test_report_names_the_kernel_that_was_accepted_last() -> None:
    text = printed_report(session())
    assert re.search(r"softmax#1/2 +correct +accepted, replaced by softmax#2/1 +ada", text)
    assert re.search(r"softmax#2/3 +correct +rejected +ada .* reads twice", text)
    winner = report_of(session()).winners[0]
    assert (winner.is_chosen, winner.chosen.attempt) == (False, "softmax#2/1")


def test_traffic_of_one_case_is_that_of_its_row() -> None:
    evaluation = judged(traffic=(traffic("ragged", 200, 100, minimal=200),))
    (row,) = counted.traffic_table(evaluation).rows
    assert counted.traffic_words(evaluation) == "traffic 1.50x"
    assert "1.50" in [cell.text for cell in row.cells]


def test_best_that_is_accepted_and_confirmed_has_both_marks_in_fleet_and_report() -> None:
    log = EventLog()
    log.open(devices=("2",))
    log.events[0] = story.changed(log.events[0], tasks=("starter/softmax",), instances=1)
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    log.attempt("softmax#1/1", RIGHT_SOURCE, timed(softmax_cases()))
    log.exam("softmax#1/1", msgspec.structs.replace(examined(), task="starter/softmax"))
    assert " = " in fleet(fold(log.events))
    log.add(ev.DecisionMade(attempt="softmax#1/1", accepted=True, why="reads once", by="ada"))
    state = fold(log.events)
    for surface in (fleet, printed_report):
        assert " += " in surface(state)


def test_times_of_the_exam_are_on_the_printed_page_as_in_the_report() -> None:
    state = fold(timed_again())
    attempt = state.attempt("vector_add#1/1")
    printed = "\n".join(verdict_lines("s", attempt, state.instances["vector_add#1"]))
    assert "timed again for the exam, in new processes and on new values; this speedup counts" in printed
    (exam_row, *_) = (row for row in printed.splitlines() if "1.28x [1.25, 1.31]" in row)
    assert "32.2" in exam_row
    assert "1.28x [1.25, 1.31]" in printed_report(state)


def test_device_time_of_baselines_is_told_apart_in_summary_and_report() -> None:
    log = EventLog(events=list(timed_again()))
    before = fold(log.events)
    assert before.device_s == 0
    log.add(
        ev.BaselineMeasured(
            task="starter/softmax", evaluation=story.evaluation(Verdict.CORRECT), device_s=21.0
        )
    )
    state = fold(log.events)
    for text in (summary(state), printed_report(state)):
        assert "21 s on devices, 21 s of it for baselines" in text


def test_tokens_from_a_cache_are_unknown_where_no_call_says_how_many() -> None:
    (with_cache, *_) = model_usage(fold(timed_again()))
    silent = [
        msgspec.structs.replace(event, usage=msgspec.structs.replace(event.usage, cached_tokens=None))
        if isinstance(event, ev.CallFinished)
        else event
        for event in timed_again()
    ]
    (usage, *_) = model_usage(fold(silent))
    assert (with_cache.cached_tokens or 0) > 0
    assert usage.cached_tokens is None
    assert "cached" not in listing(USAGE, [usage])
    without_cache = msgspec.structs.replace(usage, cached_tokens=0)
    assert "cached" in listing(USAGE, [without_cache]), "a server that says 0 is believed"


def test_confirmed_counts_winners_only() -> None:
    log = EventLog()
    log.open(devices=("2",))
    log.events[0] = story.changed(log.events[0], tasks=("starter/softmax",), instances=1)
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    log.attempt("softmax#1/1", RIGHT_SOURCE, timed(softmax_cases(1.5)))
    log.exam("softmax#1/1", msgspec.structs.replace(examined(), task="starter/softmax"))

    def confirmed() -> tuple[int, bool, bool]:
        state = fold(log.events)
        header = header_line(state, FactsCache().all(state), name="s", status=(), concerns=(), width=200)
        return (
            len(summarise(state).confirmed or ()),
            "1 confirmed" in facts_of(report_of(state))["tasks"],
            "1 confirmed" in plain(header),
        )

    assert confirmed() == (1, True, True)
    log.attempt("softmax#1/2", FAST_SOURCE, timed(softmax_cases()))
    assert confirmed() == (0, False, False), "the exam confirmed an attempt that is the best no more"


def test_one_diff_has_one_size_on_screen_and_in_the_report() -> None:
    before = "import torch\nimport triton\n\nx = 1\ny = 2\n"
    after = "import triton\nimport torch\n\nx = 1\ny = 3\n"
    log = EventLog()
    log.open(devices=("2",))
    log.attempt("softmax#1/1", before, timed(softmax_cases()))
    log.attempt("softmax#1/2", after, timed(softmax_cases()), base="softmax#1/1")
    (section,) = attempt_sections(report_of(fold(log.events)))
    (row,) = (row for row in section.rows if row.key == "softmax#1/2")
    assert "+2 -2" in [cell.text for cell in row.cells]
    assert compare_lines(before.splitlines(), after.splitlines()).summary == "+2 -2"


FIGURES = {
    "fp32": ("251.0", "130.2", "1.93x [1.90, 1.95]"),
    "narrow": ("219.0", "<18.0", ">= 12.16x"),
    "one-row": ("<12.2", "<12.1", "too short"),
    "wide": ("-", "-", "not timed"),
}
"""Baseline, candidate and speedup of an exact case, of a bound, and of two cases without a ratio."""


def with_a_case_that_is_not_timed() -> SessionState:
    """Return a session with two attempts that tie, the first with these cases. No call says its tokens."""
    log = EventLog()
    log.open(devices=("2",))
    log.events[0] = story.changed(log.events[0], tasks=("starter/softmax",), instances=1)
    log.add(ev.InstanceStarted(task="starter/softmax", instance=1))
    for number, scale in ((1, 1.0), (2, 0.999)):
        whole = timed(softmax_cases(scale))
        sizes = tuple(FullSize(case, {"rows": 8, "cols": 4097}) for case in FIGURES)
        evaluation = msgspec.structs.replace(whole, not_timed=("wide",), full_sizes=sizes)
        log.attempt(f"softmax#1/{number}", RIGHT_SOURCE, evaluation)
    silent = (
        msgspec.structs.replace(event, usage=ev.Usage()) if isinstance(event, ev.CallFinished) else event
        for event in log.events
    )
    return fold(silent)


def agent_page(state: SessionState) -> str:
    attempt = state.attempt("softmax#1/1")
    subject = PageSubject(attempt, state.instances["softmax#1"])
    return "\n".join(plain(row) for tab in ("verdict", "speed") for row in page_of(tab, subject, 10_000))


def latency_screen(state: SessionState) -> str:
    table = time_table(timings_of(state, state.attempt("softmax#1/1")), Shown.TIME)
    return "\n".join("  ".join(cell.text for cell in row.cells) for row in table.rows)


def show(state: SessionState) -> str:
    return "\n".join(verdict_lines("s", state.attempt("softmax#1/1"), state.instances["softmax#1"]))


def json_text(state: SessionState) -> str:
    attempt = state.attempt("softmax#1/1")
    document = json_document({**attempt_row(attempt), "evaluation": attempt.evaluation}, indented=True)
    read = msgspec.convert(msgspec.json.decode(document)["evaluation"], Evaluation)
    return "\n".join(
        "  ".join((row.case, row.shape, str(row.baseline), str(row.candidate), row.words))
        for row in case_rows(read)
    )


@pytest.mark.parametrize("surface", [agent_page, latency_screen, printed_report, html, show, json_text])
def test_every_surface_shows_the_same_times_and_speedup_of_a_case(
    surface: Callable[[SessionState], str],
) -> None:
    shown = surface(with_a_case_that_is_not_timed()).replace("&lt;", "<")
    for case, (baseline, candidate, speedup) in FIGURES.items():
        figure, _, interval = speedup.partition("x [")
        row = (
            rf"{case}\b.*8x4097\D.*{baseline}.*{candidate}.*{figure.removesuffix('x')}.*{re.escape(interval)}"
        )
        assert re.search(row, shown.replace("\n<td", "<td")), case


def review_of_cases(state: SessionState) -> str:
    attempt, instance = state.attempt("softmax#1/1"), state.instances["softmax#1"]
    return "\n".join(map(plain, evidence(state, attempt, instance, wall=None, width=400)))


def prompt_of_cases(state: SessionState) -> str:
    history = list(judged_of(state, "softmax#1"))
    return prompt_text(optimize_prompt(SETTING, history=history[:1]))


def mcp_answer(state: SessionState) -> str:
    return encoded(best_answer(state, "softmax#1"))


def commit_of_cases(state: SessionState) -> str:
    return attempt_message(state.attempt("softmax#1/1"))


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        (
            review_of_cases,
            ("narrow >= 12.16x", "too short on both sides: one-row", "without a latency: wide"),
        ),
        (
            prompt_of_cases,
            ("1.93x [1.90, 1.95]", ">= 12.16x (too short", "one-row (12.1 us, baseline 12.2 us)"),
        ),
        (mcp_answer, ("1.93x [1.90, 1.95]", ">= 12.16x (too short", "one-row (12.1 us, baseline 12.2 us)")),
        (commit_of_cases, (">= 2.00x; 1.80x [1.78, 1.82] exact, 4 of 7",)),
    ],
)
def test_surfaces_that_name_cases_say_the_same_of_them(
    surface: Callable[[SessionState], str], words: tuple[str, ...]
) -> None:
    shown = surface(with_a_case_that_is_not_timed())
    for text in words:
        assert text in shown


def test_of_attempts_that_tie_prompts_agents_and_rows_name_the_earlier_too() -> None:
    state = with_a_case_that_is_not_timed()
    best = RowSet(tuple(attempt_rows(state))).bests.attempt
    named = {*best, best_answer(state, "softmax#1").attempt, state.instances["softmax#1"].best}
    assert named == {"softmax#1/1"} == {report_of(state).winners[0].attempt}


def test_tokens_that_no_call_counts_are_unknown_on_every_surface() -> None:
    state = with_a_case_that_is_not_timed()
    info = info_of("s", None, summarise(state), running=True)
    (usage, *_) = model_usage(state)
    assert {row.input_tokens for row in attempt_rows(state)} == {None}
    assert info.document()["input_tokens"] is info.document()["output_tokens"] is None
    (cost,) = task_costs(state)
    assert usage.input_tokens is usage.output_tokens is cost.spent.input_tokens is None
    assert session_fields(info)["tokens"] is None
    assert "0 in" not in summary(state) + printed_report(state)


def test_bound_of_a_ratio_is_the_ratio_of_the_times_beside_it() -> None:
    (narrow,) = (row for row in case_rows(timed(softmax_cases())) if row.case == "narrow")
    assert (str(narrow.baseline), str(narrow.candidate), narrow.words) == ("219.0", "<18.0", ">= 12.16x")
    assert 12.16 <= 219.0 / 18.0 < 12.17


def test_speed_is_green_only_with_an_exact_case() -> None:
    cases = softmax_cases()
    assert speed_style(speed_of(timed(cases))) == "good"
    bounds = tuple(timing for timing in cases if timing.bound is Bound.AT_LEAST)
    alone = speed_of(timed(bounds))
    assert alone.low > 1.0
    assert speed_style(alone) == ""


def test_attempt_without_a_verdict_says_on_each_screen_that_the_recording_ended() -> None:
    log = EventLog()
    log.open()
    log.add(ev.AttemptStarted(attempt=BEST, origin=ev.Origin.FRESH))
    reason = ev.EndReason.RECORDING_EXHAUSTED
    log.add(ev.InstanceFinished(task="starter/softmax", instance=1, reason=reason))
    state = fold(log.events)
    attempt, instance = state.attempt(BEST), state.instances["softmax#1"]
    ((cell,), _) = verdict_facts(attempt, instance)
    assert cell.text.startswith("no verdict: the recording has no further reply")
    assert completions("show softmax#1/", state) == {BEST: "no further reply"}
    (section,) = attempt_sections(report_of(state))
    assert [cell.text for cell in section.rows[0].cells if "reply" in cell.text] == ["- no further reply"]


def test_nothing_runs_in_a_session_whose_engine_stopped() -> None:
    log = EventLog()
    log.open()
    log.attempt(BEST, RIGHT_SOURCE, timed(softmax_cases()))
    log.add(ev.StageStarted(attempt=BEST, stage="performance", device="2", exam=True))
    assert "exam runs: timing" in exam_sentence(fold(log.events).attempt(BEST), None)
    log.add(ev.EngineStopped(reason="interrupted"))
    state = fold(log.events)
    instance, attempt = state.instances["softmax#1"], state.attempt(BEST)
    assert doing(state, instance).word == "stopped"
    head = plain(
        head_line(state, instance, "softmax#1", attempt, wall=log.wall + 60, width=120, facts=FactsCache())
    )
    assert head.endswith(" stopped")
    printed = "\n".join(verdict_lines("s", attempt, instance))
    review = "\n".join(map(plain, evidence(state, attempt, instance, wall=None, width=200)))
    for text in (printed, review):
        assert "exam runs" not in text
        assert "not examined yet: the best attempt is examined when softmax#1 ends" in text
    assert "softmax#1 goes on after `wavedeck resume`" in evidence_title(state, attempt, instance, 120)
    log.add(ev.DecisionMade(attempt=BEST, accepted=False, why="too long", by="ada"))
    assert exam_sentence(fold(log.events).attempt(BEST), instance) == "not examined: a person rejected it"
    log.add(ev.EngineStarted(host="node17", pid=2, resumed=True))
    resumed = fold(log.events)
    assert doing(resumed, resumed.instances["softmax#1"]).word == "queued"
