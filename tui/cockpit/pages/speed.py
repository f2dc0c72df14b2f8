"""The speed tab: times by case and GPU with the state of the device, or why there are none."""

from __future__ import annotations

from harness import Evaluation
from sessions.state.speed import missing_speed
from sessions.state.state import AttemptState
from tui.cockpit import latencies, measures
from tui.cockpit.lines import EMPTY, Line, Span, line
from tui.cockpit.pages.page import paragraph, table
from tui.measured import state_words
from tui.tables import NOTHING
from tui.timed_against import sorted_by_device, spread_lines


def speed_lines(attempt: AttemptState, evaluation: Evaluation, width: int) -> list[Line]:
    """Return the times of the verdict, of the exam and of each GPU; without times the reason and the estimates."""
    return [*_of_verdict(evaluation, width), *_of_exam(attempt, width), *_by_gpu(attempt, width)]


def _of_verdict(evaluation: Evaluation, width: int) -> list[Line]:
    if evaluation.latency:
        lines = _measured(evaluation, width)
    else:
        lines = paragraph(f"Not measured: {missing_speed(evaluation)}", width, "warn")
    lines += [row for note in evaluation.notes for row in paragraph(note, width, "warn")]
    if not evaluation.estimate:
        return lines
    sizes = (
        ", at the sizes of the sample"
        if evaluation.sampled
        else ", at the sizes that the interpreter counted"
    )
    lines += [EMPTY, (Span("roofline estimate, not a measurement", "warn"), Span(sizes, "dim"))]
    lines += table(measures.ESTIMATE_COLUMNS, measures.estimate_rows(evaluation), width)
    # The table shows the sizes.
    for basis in dict.fromkeys(estimate.basis.partition("; at ")[0] for estimate in evaluation.estimate):
        lines += paragraph(f"basis: {basis}", width, "dim")
    return lines


def _measured(evaluation: Evaluation, width: int) -> list[Line]:
    latency = evaluation.latency
    lines = table(latencies.time_columns(latency), latencies.time_rows(latency), width)
    lines += paragraph(latencies.means(evaluation), width)
    rows = latencies.device_rows(latency)
    if any(cell.text not in NOTHING for row in rows for cell in row.cells[2:]):
        lines += [EMPTY, line("device during timing, and share of its peak", "head")]
        lines += table(latencies.DEVICE_COLUMNS, rows, width)
    for name, state in (("before", evaluation.device_before), ("after", evaluation.device_after)):
        words = "" if state is None else state_words(state)
        lines += paragraph(f"{name}: {words}" if words else "", width, "dim")
    return lines + [row for text in latencies.remarks(latency) for row in paragraph(text, width, "warn")]


def _of_exam(attempt: AttemptState, width: int) -> list[Line]:
    if attempt.exam is None or not attempt.exam.latency:
        return []
    words = "timed again for the exam, in new processes and on new values; this speedup counts"
    return [EMPTY, *paragraph(words, width, "head"), *_measured(attempt.exam, width)]


def _by_gpu(attempt: AttemptState, width: int) -> list[Line]:
    if not attempt.spread:
        return []
    measurements = sorted_by_device(attempt.spread)
    lines = [EMPTY, line("timed again on these GPUs, in new processes", "head")]
    latency = tuple(row for measurement in measurements for row in measurement.evaluation.latency)
    if latency:
        lines += table(latencies.time_columns(latency), latencies.time_rows(latency), width)
        rows = latencies.device_rows(latency)
        if any(cell.text not in NOTHING for row in rows for cell in row.cells[2:]):
            lines += table(latencies.DEVICE_COLUMNS, rows, width)
    return lines + [row for text in spread_lines(attempt) for row in paragraph(text, width, "dim")]
