"""The lower panes of an agent, each as lines of a given width."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation
from sessions.state import AttemptState
from tui import attempts, measures, wording
from tui.attempts import Told
from tui.grid import Column, Row, heading, places, row_line
from tui.lines import EMPTY, Line, Span, line, wrap

LEGEND = (
    "waves: waves a SIMD (AMD) or warps an SM (NVIDIA) that fit, and what limits them; matrix: matrix instructions; "
    "loads: width in bits and how many; @n: config n of an autotuned kernel"
)


def told(name: str, attempt: AttemptState, target: str | None, width: int) -> Told:
    """The lines of the pane of this name."""
    match name:
        case "verdict":
            return attempts.verdict_lines(attempt, target, width)
        case "stages":
            return Told(attempts.stage_lines(attempt, width), [])
        case "prompt":
            return Told(attempts.prompt_lines(attempt, width), [])
        case _:
            if attempt.evaluation is None:
                return Told([line("no evaluation yet", "dim")], [])
            lines = (resources if name == "resources" else speed)(attempt.evaluation, width)
            return Told(lines, [])


def copy_text(name: str, attempt: AttemptState) -> str:
    """What `y` copies where that is not what is drawn: the whole trace, the exact prompt."""
    if name == "prompt":
        return "\n\n".join(message.content for call in attempt.calls for message in call.messages)
    error = attempt.evaluation.error if attempt.evaluation is not None else None
    if name == "verdict" and error is not None and error.trace:
        return f"{error.message}\n\n{error.trace}"
    return ""


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Line]:
    """A whole table as lines."""
    placed = places(columns, rows, width)
    return [heading(columns, placed), *(row_line(columns, placed, row) for row in rows)]


def resources(evaluation: Evaluation, width: int) -> list[Line]:
    """What each kernel takes of each target."""
    rows = measures.resource_rows(evaluation)
    lines = table(measures.RESOURCE_COLUMNS, rows, width) if rows else [line("Nothing was compiled.", "dim")]
    if rows:
        lines += [EMPTY, *(line(each, "dim") for each in wrap(LEGEND, width))]
    notes = sorted(
        {note for kernels in evaluation.resources.values() for kernel in kernels for note in kernel.notes}
    )
    for name, message in evaluation.compile_errors.items():
        lines += [
            EMPTY,
            line(f"{name} does not compile", "bad"),
            *(line(each) for each in wrap(message, width)),
        ]
    return [*lines, *(line(each, "dim") for note in notes for each in wrap(note, width))]


def speed(evaluation: Evaluation, width: int) -> list[Line]:
    """Latencies where they were measured; else what is known without a measurement, labelled so."""
    lines: list[Line] = []
    if evaluation.latency:
        lines += table(measures.LATENCY_COLUMNS, measures.latency_rows(evaluation.latency), width)
        means = [
            f"{name} {wording.times(value)}"
            for name, value in (("mean", evaluation.speedup), ("geometric mean", evaluation.speedup_geomean))
            if value is not None
        ]
        lines += [line("speedup: " + ", ".join(means))] if means else []
    else:
        lines.append(line(f"Not measured: device {evaluation.device} gives no latency.", "warn"))
    if evaluation.traffic:
        lines += [EMPTY, line("bytes counted by the interpreter, at cpu sizes", "head")]
        lines += table(measures.TRAFFIC_COLUMNS, measures.traffic_rows(evaluation), width)
        strays = [stray for each in evaluation.traffic for stray in each.out_of_bounds]
        lines += [line(f"out of bounds: {stray}", "bad") for stray in strays]
    if evaluation.estimate:
        lines += [
            EMPTY,
            (Span("roofline estimate, not a measurement", "warn"), Span(", at gpu sizes", "dim")),
        ]
        lines += table(measures.ESTIMATE_COLUMNS, measures.estimate_rows(evaluation), width)
        for basis in dict.fromkeys(each.basis for each in evaluation.estimate if each.basis):
            lines += [line(each, "dim") for each in wrap(f"basis: {basis}", width)]
    return lines
