"""The sections of a report about its winners, and the winners of several sessions in one table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sessions.names import short_task
from sessions.state.figure_words import interval_words, ratio_words
from sessions.state.findings import finding_words, findings_of
from sessions.state.speed import MIXED, Speed, baseline_names, carrying_case, missing_speed
from sessions.state.state import Confirmation
from tui.facts.attempt import origin_words, strategy_words
from tui.facts.evaluation.counted import figures_of, traffic_change
from tui.facts.evaluation.roofs import NO_PRODUCT, has_peak_share, roof_range_words
from tui.facts.evaluation.spread import by_gpu_words
from tui.facts.tables import Cell, Column, Field, Number, Row, columns_of
from tui.facts.vocabulary import ACCEPTED, CONFIRMED, FINDING, UNKNOWN, WAITS, counted, speed_style

from .model import SessionReport, Unsolved, Winner
from .section import Bars, NamedSpeed, Section, section_of

CAUTION = "Compare only rows with the same baseline and the same device."
EXAM_STYLES = {
    Confirmation.CONFIRMED: "",
    Confirmation.NOT_CONFIRMED: "bad",
    Confirmation.NOT_EXAMINED: "dim",
}


def speed_cell(speed: Speed | None) -> Cell:
    """Return `1.84x` or `>= 2.65x` in the colour of the speed."""
    return Cell("") if speed is None else Cell(speed.figure, speed_style(speed), value=speed.value)


def interval_cell(speed: Speed | None) -> Cell:
    """Return the 95 % interval: `[1.79, 1.88]`."""
    ends = None if speed is None else speed.interval
    return Cell("" if ends is None else interval_words(*ends), speed_style(speed))


def cases_words(speed: Speed | None) -> str:
    """Return the cases with a ratio: `6`, or `5 of 6`."""
    if speed is None:
        return ""
    return f"{speed.cases}" if speed.cases == speed.all_cases else f"{speed.cases} of {speed.all_cases}"


def _decision(winner: Winner) -> str:
    """Return `accepted`, `accepted: #1/3` if it is another attempt of the task, or `waits`."""
    decision = winner.best.decision
    accepted = decision is not None and decision.accepted
    if winner.chosen is not None and not winner.is_chosen:
        chosen = winner.chosen.attempt.rpartition("#")[2]
        return f"{'accepted, then' if accepted else 'accepted:'} #{chosen}"
    return "accepted" if accepted else "waits" if winner.best.waiting else ""


def _remark(winner: Winner) -> str:
    """Return the traffic of a winner without a speedup, from the first correct attempt on, and why it has no speedup."""
    missing = missing_speed(winner.evaluation)
    change = traffic_change(winner.first.evaluation, winner.evaluation)
    return ": ".join(filter(None, (change, missing))) if missing else ""


def _figure(name: str, winner: Winner) -> str:
    """Return a figure of a winner without a speedup."""
    value = getattr(figures_of(winner.best), name) if winner.speed is None else None
    return "" if value is None else f"{value:g}"


def _one_case(winner: Winner) -> str:
    """Return `narrow has 82.32x; the mean without it: 1.23x (6 cases)` if one case carries the mean; else empty."""
    carried = carrying_case(winner.evaluation)
    if carried is None:
        return ""
    case, rest = carried
    alone = ratio_words(case.speedup, case.bound.sign)
    return f"{case.case} has {alone}; the mean without it: {rest.figure} ({counted(rest.all_cases, 'case')})"


def _marks(winner: Winner) -> Cell:
    """Return the marks behind a winner: `!` findings, `?` waits, `+` accepted, `=` confirmed by the exam."""
    best, findings = winner.best, findings_of(winner.best)
    text = (
        (FINDING if findings else "")
        + (ACCEPTED if winner.is_chosen else WAITS if best.waiting else "")
        + (CONFIRMED if best.confirmation is Confirmation.CONFIRMED else "")
    )
    return Cell(text, "warn" if best.waiting or findings else "")


def _device(winner: Winner) -> str:
    """Return `0 MI300X`: the devices of the times, with their products; empty if nothing was timed."""
    products: dict[str, str] = {}
    for row in winner.cases:
        if (timed := row.latency) is not None:
            products.setdefault(row.device, timed.efficiency.product if timed.efficiency else "")
    return ", ".join(f"{device} {product}".strip() for device, product in products.items())


def _against(winner: Winner) -> str:
    return baseline_names(winner.evaluation)


def _attempt(winner: Winner) -> str:
    return winner.attempt


def _exam(winner: Winner) -> Cell:
    return Cell(str(winner.best.confirmation), EXAM_STYLES[winner.best.confirmation])


WINNERS: tuple[Field[Winner], ...] = (
    Field(Column("attempt", most=26, keep=True), _attempt),
    Field(Number("speedup", 9, 10, if_known=True), lambda winner: speed_cell(winner.speed)),
    Field(Number("95 %", 12, 14, if_known=True, drop=1), lambda winner: interval_cell(winner.speed)),
    Field(Column("", 3, 3, if_known=True), _marks),
    Field(Number("cases", 6, 8, if_known=True, drop=4), lambda winner: cases_words(winner.speed), "dim"),
    Field(
        Number("exact cases", if_known=True, drop=10),
        lambda winner: winner.speed.exact_words if winner.speed is not None else "",
    ),
    Field(Column("remark", 24, 60, if_known=True, drop=2), _remark),
    Field(Number("launches", if_known=True, drop=11), partial(_figure, "launches")),
    Field(Number("registers", if_known=True, drop=12), partial(_figure, "registers")),
    Field(
        Number("roof", 7, 8, if_known=True, drop=3),
        lambda winner: roof_range_words(winner.cases),
    ),
    Field(Column("exam", 12, 12), _exam),
    Field(Column("decision", 14, 30, if_known=True, drop=5), _decision),
    Field(
        Number("before exam", if_known=True, drop=6), lambda winner: speed_cell(winner.best.found_speed).text
    ),
    Field(Column("against", 7, 12, if_known=True, drop=7), _against, "dim"),
    Field(Column("device", 6, 24, if_known=True, drop=8), _device, "dim"),
    Field(Column("by GPU", 12, 30, if_known=True, drop=9), lambda winner: by_gpu_words(winner.best)),
)
WINNER_COLUMNS = columns_of(WINNERS)
WHY: tuple[Field[Winner], ...] = (
    Field(Column("attempt", keep=True), _attempt),
    Field(Column("origin", if_known=True), lambda winner: origin_words(winner.best)),
    Field(Column("one case", least=20, if_known=True), _one_case),
    Field(Column("why", least=30, if_known=True), lambda winner: strategy_words(winner.best)),
    Field(
        Column("findings", least=20, if_known=True),
        lambda winner: finding_words(findings_of(winner.best)),
        "warn",
    ),
)
WHERE: tuple[Field[Winner], ...] = (
    Field(Column("attempt", keep=True), _attempt),
    Field(Column("commit", keep=True), lambda winner: (winner.best.commit or "")[:12]),
    Field(Column("branch", keep=True), lambda winner: winner.branch),
    Field(
        Column("accepted file", keep=True, if_known=True),
        lambda winner: f"{winner.task}/kernel.py" if winner.is_chosen else "",
    ),
)


def winner_sections(report: SessionReport) -> tuple[Section, ...]:
    """Return the winners with the tasks without one, why they are fast, and where they are."""
    unsolved = report.unsolved if report.tally.judged else ()
    speeds = tuple(
        NamedSpeed(short_task(winner.task), winner.speed)
        for winner in report.winners
        if winner.speed is not None
    )
    winners = section_of("Winners", WINNERS, report.winners, _attempt, further=map(_unsolved_row, unsolved))
    return (
        replace(winners, sentences=tuple(_notes(report)), plots=(Bars(speeds),) if speeds else ()),
        section_of(
            "Why: the strategy in the model's words, or the closest attempt's error",
            WHY,
            report.winners,
            _attempt,
            further=map(_unsolved_reason, unsolved),
        ),
        section_of(
            "Where the kernels lie",
            WHERE,
            report.winners,
            _attempt,
            "Read a kernel with `git show COMMIT:kernel.py` in the store, an accepted one on the branch `accepted`.",
        ),
    )


def _notes(report: SessionReport) -> Iterator[str]:
    """Yield what a reader must know about the winners."""
    if not report.winners:
        rejected = bool(report.solved)
        why = "People rejected every correct attempt." if rejected else "No task is solved."
        yield f"There is no winner. {why if report.tally.judged else 'No attempt was judged yet.'}"
        return
    signs = {winner.speed.sign for winner in report.winners if winner.speed is not None}
    if signs:
        means = dict.fromkeys(winner.speed.mean for winner in report.winners if winner.speed is not None)
        yield f"Speedup: {' or '.join(means)} over all cases, with its 95 % interval. A case without a ratio counts as 1.00."
    if ">=" in signs:
        yield "`>=` is a lower bound: some cases are too short for an exact time."
    if MIXED in signs:
        yield "`~` is a mean over lower and upper bounds: the true speedup may be above or below."
    if any(roof_range_words(winner.cases) for winner in report.winners):
        yield "Roof: share of the copy or matrix product that this session measured on the device."
    if any(has_peak_share(winner.cases) for winner in report.winners):
        yield NO_PRODUCT
    if any(_marks(winner).text for winner in report.winners):
        yield "Marks: `!` findings, `?` waits for review, `+` accepted, `=` confirmed by the exam."
    if not report.has_gpu:
        yield "Without a GPU no time was measured. Traffic: requested bytes over needed bytes; lower is better."
    failed = [
        winner.attempt for winner in report.winners if winner.best.confirmation is Confirmation.NOT_CONFIRMED
    ]
    if failed:
        yield f"Do not use {', '.join(failed)}: wrong on the cases of the exam."


def _unsolved_row(task: Unsolved) -> Row:
    texts = {"attempt": task.closest or short_task(task.task), "exam": "no winner", "": ""}
    cells = tuple(Cell(texts.get(column.title, UNKNOWN), "dim") for column in WINNER_COLUMNS)
    return Row(task.closest or f"task:{task.task}", cells)


def _unsolved_reason(task: Unsolved) -> Row:
    row = _unsolved_row(task)
    texts = {"attempt": row.cells[0].text, "why": task.why}
    return Row(row.key, tuple(Cell(texts.get(field.column.title, UNKNOWN)) for field in WHY))
