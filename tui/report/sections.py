"""The sections of a report: titles, sentences and tables, which every format shows alike."""

from __future__ import annotations

from collections.abc import Iterator

from sessions.names import short_task
from sessions.state.speed import MIXED
from sessions.state.state import Confirmation
from tui.tables import Column
from tui.vocabulary import UNKNOWN, counted, duration, grouped, interval, moment, money, percent, words

from .attempt_sections import attempt_sections
from .bars import bar_lines
from .metric_sections import metric_sections
from .model import SessionReport
from .phrases import (
    case_ratio,
    case_time,
    cases_words,
    decided_words,
    decision_words,
    exact_words,
    exam_words,
    figure_words,
    interval_words,
    origin_words,
    roof_range_words,
    roof_words,
    short_commit,
)
from .section import Section

BAR_CELLS = 24


def sections_of(report: SessionReport) -> list[Section]:
    """Return the sections of a report, winners first; a section without content is left out."""
    sections = [
        *_winner_sections(report),
        _unsolved(report),
        _decisions(report),
        _cases(report),
        *attempt_sections(report),
        *metric_sections(report),
        _estimates(report),
    ]
    return [section for section in sections if section.rows or section.sentences or section.drawing]


def facts_of(report: SessionReport) -> list[tuple[str, str]]:
    """Return name and value of the facts above the sections."""
    summary = report.summary
    exams = "" if summary.confirmed is None else f", {summary.confirmed} confirmed by the exam"
    share = "" if summary.tally.share_correct is None else f", {percent(summary.tally.share_correct)} correct"
    uncounted = f", {grouped(summary.tally.uncounted)} not counted" if summary.tally.uncounted else ""
    decisions = [
        counted(summary.accepted, "attempt") + " accepted" if summary.accepted else "",
        f"{summary.rejected} rejected" if summary.rejected else "",
        f"{counted(summary.waiting, 'attempt')} waiting for review" if summary.waiting else "",
    ]
    timing = {
        "measured": f"measured against {summary.against or 'the baseline'}",
        "no GPU": "estimate only: no GPU",
    }.get(summary.timing, summary.timing)
    device = f"{duration(summary.device_s)} on devices" if summary.device_s else ""
    price = summary.cost_usd / summary.solved if summary.cost_usd is not None and summary.solved else None
    facts = [
        ("title", summary.title),
        ("session", f"{summary.session}, {summary.state}"),
        ("method", f"{summary.method} with {summary.model}"),
        ("speed", timing),
        ("solved", f"{summary.solved} of {counted(summary.tasks, 'task')}{exams}"),
        ("attempts", f"{grouped(summary.tally.judged)} judged{share}{uncounted}"),
        ("people", ", ".join(filter(None, decisions))),
        ("spent", summary.spending),
        ("price", "" if price is None else f"{money(price)} for each solved task"),
        ("time", ", ".join(filter(None, (f"{duration(summary.worked_s)} of work", device)))),
    ]
    return [(name, value) for name, value in facts if value]


def _winner_sections(report: SessionReport) -> Iterator[Section]:
    if not report.winners:
        attempts = "no attempt was judged yet" if not report.summary.tally.judged else "no task is solved"
        yield Section("Winners", sentences=(f"There is no winner: {attempts}.",))
        return
    notes = []
    if any(winner.speed is not None for winner in report.winners):
        notes.append(
            "Speedup: geometric mean over all cases, with its 95 % interval. A case without a ratio counts as 1.00."
        )
    if any(winner.speed is not None and winner.speed.sign == ">=" for winner in report.winners):
        notes.append("`>=` is a lower bound: some cases are too short for an exact time.")
    if any(winner.speed is not None and winner.speed.sign == MIXED for winner in report.winners):
        notes.append("`~` is a mean over lower and upper bounds: the true speedup may be above or below.")
    if any(winner.roof is not None for winner in report.winners):
        notes.append("Roof: share of the copy or matrix product that this session measured on the device.")
    if report.summary.timing == "no GPU":
        notes.append("Estimate only: without a GPU no time was measured.")
    notes += [f"{winner.attempt} has {winner.findings}" for winner in report.winners if winner.findings]
    failed = [winner.attempt for winner in report.winners if winner.confirmed is Confirmation.NOT_CONFIRMED]
    if failed:
        notes.append(f"Do not use {', '.join(failed)}: wrong on the cases of the exam.")
    yield Section(
        "Winners",
        sentences=tuple(notes),
        columns=(
            Column("task", keep=True),
            Column("speedup", right=True, if_known=True),
            Column("95 %", right=True, if_known=True),
            Column("cases", right=True, if_known=True),
            Column("exact cases", right=True, if_known=True, drop=6),
            Column("remark", if_known=True),
            Column("roof", right=True, if_known=True, drop=2),
            Column("exam"),
            Column("decision", if_known=True),
            Column("before exam", right=True, if_known=True, drop=3),
            Column("against", if_known=True, drop=1),
            Column("device", if_known=True, drop=4),
            Column("by GPU", if_known=True, drop=5),
            Column("attempt", keep=True),
        ),
        rows=tuple(
            (
                short_task(winner.task),
                figure_words(winner.speed),
                interval_words(winner.speed),
                cases_words(winner.speed),
                exact_words(winner.speed),
                winner.no_speed or UNKNOWN,
                roof_range_words(winner.roof),
                exam_words(winner),
                decision_words(winner),
                figure_words(winner.before_exam),
                winner.against or UNKNOWN,
                winner.device or UNKNOWN,
                winner.by_gpu or UNKNOWN,
                winner.attempt,
            )
            for winner in report.winners
        ),
    )
    drawing = bar_lines(report.winners, BAR_CELLS)
    if drawing:
        sentences = (
            "The scale is linear from 0; `|` is the baseline, `[--]` the 95 % interval, `>` a lower bound, `//` a bar that is cut.",
        )
        yield Section("Speedup by task", sentences=sentences, drawing=tuple(drawing))
    yield Section(
        "Why: the strategy in the model's words",
        columns=(Column("attempt", keep=True), Column("origin"), Column("strategy", least=30, if_known=True)),
        rows=tuple(
            (winner.attempt, origin_words(winner.origin, winner.base), winner.strategy or UNKNOWN)
            for winner in report.winners
        ),
    )
    yield Section(
        "Where the kernels lie",
        sentences=(
            "Read a kernel with `git show COMMIT:kernel.py` in the store, an accepted one on the branch `accepted`.",
        ),
        columns=(
            Column("attempt", keep=True),
            Column("commit", keep=True),
            Column("branch", keep=True),
            Column("accepted file", keep=True, if_known=True),
        ),
        rows=tuple(
            (winner.attempt, short_commit(winner.commit), winner.branch, winner.accepted_file or UNKNOWN)
            for winner in report.winners
        ),
    )


def _unsolved(report: SessionReport) -> Section:
    return Section(
        "Tasks without a winner",
        columns=(
            Column("task", keep=True),
            Column("attempts", right=True),
            Column("closest", keep=True, if_known=True),
            Column("why", least=30),
            Column("ended", if_known=True),
        ),
        rows=tuple(
            (
                short_task(task.task),
                grouped(task.attempts),
                task.closest or UNKNOWN,
                task.why,
                task.ended or UNKNOWN,
            )
            for task in report.unsolved
        ),
    )


def _decisions(report: SessionReport) -> Section:
    return Section(
        "Decisions of people",
        columns=(
            Column("attempt", keep=True),
            Column("verdict"),
            Column("decision", keep=True),
            Column("by"),
            Column("when (UTC)", drop=1),
            Column("reason", least=30, if_known=True),
        ),
        rows=tuple(
            (
                decided.attempt,
                words(decided.verdict) if decided.verdict is not None else UNKNOWN,
                decided_words(decided),
                decided.by or UNKNOWN,
                moment(decided.wall),
                decided.why or UNKNOWN,
            )
            for decided in report.decisions
        ),
    )


def _cases(report: SessionReport) -> Section:
    return Section(
        "Cases of the winners",
        sentences=("Medians in microseconds; `<` says that a time is too short to be timed exactly.",)
        if report.cases
        else (),
        columns=(
            Column("attempt", keep=True),
            Column("case", keep=True),
            Column("sizes", if_known=True, drop=4),
            Column("device", if_known=True, drop=2),
            Column("baseline us", right=True),
            Column("this us", right=True),
            Column("speedup", right=True),
            Column("95 %", right=True, if_known=True),
            Column("outcome"),
            Column("roof", right=True, if_known=True, drop=1),
            Column("cache", if_known=True, drop=3),
            Column("remark", if_known=True, drop=5),
        ),
        rows=tuple(
            (
                case.attempt,
                case.case,
                case.sizes or UNKNOWN,
                case.device or UNKNOWN,
                case_time(case.baseline_us, case.baseline_short_us),
                case_time(case.candidate_us, case.candidate_short_us),
                case_ratio(case),
                UNKNOWN if case.interval is None else interval(*case.interval),
                case.outcome.value if case.outcome is not None else UNKNOWN,
                roof_words(case.roof),
                case.cache or UNKNOWN,
                case.why or UNKNOWN,
            )
            for case in report.cases
        ),
    )


def _estimates(report: SessionReport) -> Section:
    return Section(
        "Estimates of winners without a time",
        sentences=(
            "Bounds from counted bytes and operations at the device's peaks. No figure here was measured.",
        )
        if report.estimates
        else (),
        columns=(
            Column("attempt", keep=True),
            Column("case", keep=True),
            Column("sizes", if_known=True, drop=1),
            Column("target", keep=True),
            Column("at least us", right=True),
            Column("uncached us", right=True),
            Column("limit"),
        ),
        rows=tuple(
            (
                case.attempt,
                case.case,
                case.sizes or UNKNOWN,
                case.target,
                f"{case.low_us:,.4g}",
                f"{case.high_us:,.4g}",
                case.limit,
            )
            for case in report.estimates
        ),
    )
