"""The times of a correct attempt, case by case, with its change against the attempt that it was made from."""

from __future__ import annotations

from collections.abc import Mapping

from harness import Evaluation, Latency, Outcome
from harness.wire.latency import Bound
from sessions.state.speed import timed_evaluation
from tui import vocabulary
from tui.cockpit.attempts import short_name
from tui.cockpit.latency.timings import is_hidden, side_us
from tui.cockpit.lines import Line, clean
from tui.cockpit.pages.page import PageSubject, table
from tui.report.roofs import is_launch_bound
from tui.tables import Cell, Column, Row

NOTHING = Cell(vocabulary.UNKNOWN, "dim")


def case_table(subject: PageSubject, width: int) -> list[Line]:
    """Return a row for each case and GPU; nothing if nothing was timed. Times are medians in microseconds."""
    evaluation = timed_evaluation(subject.attempt)
    if evaluation is None or not evaluation.latency:
        return []
    base = timed_evaluation(subject.base) if subject.base is not None else None
    earlier = _times(base)
    rows = [
        _row(latency, subject.shapes, earlier.get((latency.device, latency.case)))
        for latency in evaluation.latency
    ]
    rows += [_untimed(case, subject.shapes) for case in evaluation.not_timed]
    name = f"vs {short_name(subject.base.attempt)}" if subject.base is not None else "vs base"
    against = {clean(latency.against) for latency in evaluation.latency if latency.against}
    baseline = against.pop() if len(against) == 1 else "baseline"
    is_measured = any(_roof(latency, measured=True) for latency in evaluation.latency)
    devices = {latency.device for latency in evaluation.latency}
    columns = (
        Column("case", 8, 24),
        Column("shape", 8, 20, drop=4, if_known=True),
        Column("GPU", 3, 6, drop=0 if len(devices) > 1 else 5),
        Column(f"{baseline} us", 9, 14, right=True, drop=2),
        Column("this us", 8, 9, right=True, drop=1),
        Column("speedup", 9, 22),
        Column("share of roof" if is_measured else "share of peak", 13, 14, drop=3, if_known=True),
        Column(name, 8, 10, right=True, if_known=True, drop=3),
    )
    return table(columns, rows, width)


def _times(evaluation: Evaluation | None) -> dict[tuple[str, str], float]:
    latencies = evaluation.latency if evaluation is not None else ()
    return {(latency.device, latency.case): latency.candidate_ms for latency in latencies}


def _row(latency: Latency, shapes: Mapping[str, str], earlier_ms: float | None) -> Row:
    return Row(
        f"{latency.device}/{latency.case}",
        (
            Cell(clean(latency.case)),
            Cell(shapes.get(latency.case, vocabulary.UNKNOWN), "dim"),
            Cell(clean(latency.device), "key"),
            Cell(side_us(latency, baseline=True)),
            Cell(side_us(latency)),
            _speedup(latency),
            _share(latency),
            NOTHING if is_hidden(latency) else _change(latency.candidate_ms, earlier_ms),
        ),
    )


def _untimed(case: str, shapes: Mapping[str, str]) -> Row:
    blank = (NOTHING, NOTHING, NOTHING)
    cells = (Cell(clean(case)), Cell(shapes.get(case, "-"), "dim"), *blank, Cell("not timed", "warn"))
    return Row(f"-/{case}", (*cells, NOTHING, NOTHING))


def _speedup(latency: Latency) -> Cell:
    if latency.speedup is None:
        return Cell(latency.outcome.value, "dim")
    style = "good" if latency.outcome is Outcome.FASTER else ""
    exact = latency.ci if latency.bound is Bound.NONE else None
    interval = f" {vocabulary.interval(*exact)}" if exact is not None else ""
    return Cell(vocabulary.speedup(latency.speedup, latency.bound) + interval, style)


def _roof(latency: Latency, *, measured: bool) -> tuple[float, str] | None:
    """The larger share of memory and compute: of the roof measured on this device, or of the vendor's peak."""
    used = latency.efficiency
    if used is None:
        return None
    shares = (
        (used.io_measured if measured else used.io_utilisation, "memory"),
        (used.mfu_measured if measured else used.mfu, "compute"),
    )
    return max(((share, limit) for share, limit in shares if share is not None), default=None)


def _share(latency: Latency) -> Cell:
    if is_launch_bound(latency):
        return Cell("- launch", "dim")
    measured = _roof(latency, measured=True)
    share = measured or _roof(latency, measured=False)
    if share is None:
        return NOTHING
    return Cell(f"{vocabulary.percent(share[0])} {share[1]}")


def _change(this_ms: float, earlier_ms: float | None) -> Cell:
    if earlier_ms is None or not this_ms:
        return NOTHING
    return Cell(f"{(earlier_ms / this_ms - 1) * 100:+.0f} %")
