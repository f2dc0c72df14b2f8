"""The lower panes of an agent, each as lines of a given width."""

from __future__ import annotations

from collections.abc import Sequence

from harness import Evaluation
from sessions.state import AttemptState, InstanceState
from tui.cockpit import attempts, latencies, measures
from tui.cockpit.attempts import Told
from tui.cockpit.grid import heading, places, row_line
from tui.cockpit.latency.absences import unmeasured_words
from tui.cockpit.lines import EMPTY, Line, Span, clean, line, wrap
from tui.cockpit.measures import Binary
from tui.measured import state_words
from tui.tables import NOTHING, Column, Row
from tui.timed_against import spread_lines

LEGEND = (
    "limit: what keeps more waves (AMD, a SIMD) or warps (NVIDIA, an SM) from fitting; MFMA, MMA: matrix instructions; "
    "loads: width in bits:how many; @n: config n of an autotuned kernel; LDS and shared memory in bytes"
)


def told(
    name: str, attempt: AttemptState, instance: InstanceState | None, target: str | None, width: int
) -> Told:
    """The lines of the pane of this name, about an attempt of an instance."""
    match name:
        case "verdict":
            return attempts.verdict_lines(attempt, instance, target, width)
        case "stages":
            return Told(attempts.stage_lines(attempt, width), [])
        case "prompt":
            return Told(attempts.prompt_lines(attempt, width), [])
        case _:
            if attempt.evaluation is None:
                return Told([line("no evaluation yet", "dim")], [])
            if name == "resources":
                return Told(resources(attempt.evaluation, width), [])
            return Told(
                [*speed(attempt.evaluation, width), *_timed_again(attempt, width), *_on_each(attempt, width)],
                [],
            )


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
    """What each kernel takes of each target, then how each was launched."""
    if not evaluation.resources and not evaluation.compile_errors:
        return [line("Nothing was compiled.", "dim")]
    lines: list[Line] = []
    for name in dict.fromkeys((*evaluation.resources, *evaluation.compile_errors)):
        kernels = evaluation.resources.get(name, ())
        found = measures.binaries(kernels)
        lines += [EMPTY] if lines else []
        lines.append((Span(name, "key"), Span(f"  {len(kernels)} launches compiled at gpu sizes", "dim")))
        message = evaluation.compile_errors.get(name, "")
        if message:
            lines += [line(each, "bad") for each in wrap(f"does not compile: {clean(message)}", width)]
        if found:
            columns = measures.resource_columns(amd=measures.is_amd(kernels))
            lines += table(columns, measures.resource_rows(name, found, width), width)
            lines += _launches(found, width)
        # A note that the message tells already is not told twice.
        notes = {note for each in kernels for note in each.notes if note not in message}
        lines += [line(each, "warn") for note in sorted(notes) for each in wrap(clean(note), width)]
    return [*lines, EMPTY, *(line(each, "dim") for each in wrap(LEGEND, width))]


def _launches(found: Sequence[Binary], width: int) -> list[Line]:
    """Configuration, cases and the rest of each binary, whole."""
    lines: list[Line] = [EMPTY, line("launched as", "head")]
    for each in found:
        cases = wrap(clean(", ".join(each.cases)), width - len(each.name) - 4)
        lines.append((Span(f"  {each.name}  "), Span(cases[0], "dim")))
        lines += [line(" " * (len(each.name) + 4) + rest, "dim") for rest in cases[1:]]
        config = " ".join(f"{name}={value}" for name, value in each.kernel.config.items())
        for text in (clean(config), measures.launch_facts(each)):
            lines += [line(f"    {row}", "dim") for row in wrap(text, width - 4) if text]
    return lines


def _measured(evaluation: Evaluation, width: int) -> list[Line]:
    """Times by case and GPU, what they are worth, and how the GPU fared meanwhile."""
    latency = evaluation.latency
    lines = table(latencies.time_columns(latency), latencies.time_rows(latency), width)
    means = latencies.means(evaluation)
    lines += [line(each) for each in wrap(means, width) if means]
    rows = latencies.device_rows(latency)
    if any(cell.text not in NOTHING for row in rows for cell in row.cells[2:]):
        lines += [EMPTY, line("the device meanwhile, and what was achieved of it", "head")]
        lines += table(latencies.DEVICE_COLUMNS, rows, width)
    for name, state in (("before", evaluation.device_before), ("after", evaluation.device_after)):
        words = "" if state is None else clean(state_words(state))
        lines += [line(each, "dim") for each in wrap(f"{name}: {words}", width) if words]
    return lines + [line(each, "warn") for text in latencies.remarks(latency) for each in wrap(text, width)]


def _timed_again(attempt: AttemptState, width: int) -> list[Line]:
    """What the exam measured: by this one an attempt is compared."""
    if attempt.exam is None or not attempt.exam.latency:
        return []
    words = "timed again for the exam, in fresh processes and on fresh values"
    return [EMPTY, line(words, "head"), *_measured(attempt.exam, width)]


def _on_each(attempt: AttemptState, width: int) -> list[Line]:
    """A winner on every GPU of the session, each beside the timing baseline on the same chip."""
    if not attempt.spread:
        return []
    told = sorted(attempt.spread, key=lambda one: one.device)
    lines = [EMPTY, line("timed again on these GPUs, in new processes", "head")]
    latency = tuple(each for one in told for each in one.evaluation.latency)
    if latency:
        lines += table(latencies.time_columns(latency), latencies.time_rows(latency), width)
        rows = latencies.device_rows(latency)
        if any(cell.text not in NOTHING for row in rows for cell in row.cells[2:]):
            lines += table(latencies.DEVICE_COLUMNS, rows, width)
    for text in spread_lines(attempt):
        lines += [line(each, "dim") for each in wrap(clean(text), width)]
    return lines


def speed(evaluation: Evaluation, width: int) -> list[Line]:
    """Latencies where they were measured; else what is known without a measurement, labelled so."""
    lines: list[Line] = []
    if evaluation.latency:
        lines += _measured(evaluation, width)
    else:
        lines += [
            line(each, "warn") for each in wrap(f"Not measured: {clean(unmeasured_words(evaluation))}", width)
        ]
    notes = [each for note in evaluation.notes for each in wrap(clean(note), width)]
    lines += [line(each, "warn") for each in notes]
    if evaluation.traffic:
        lines += [EMPTY, line("bytes counted by the interpreter, at cpu sizes", "head")]
        lines += table(measures.TRAFFIC_COLUMNS, measures.traffic_rows(evaluation), width)
        reads = [finding for finding in evaluation.findings if finding.kind == "out_of_bounds"]
        lines += [line(finding.text, "warn") for finding in reads]
    if evaluation.sampled:
        lines += [EMPTY, line("bytes estimated at gpu sizes, from a sample of programs", "head")]
        lines += table(measures.SAMPLED_COLUMNS, measures.sampled_rows(evaluation), width)
    for case, why in evaluation.not_sampled.items():
        lines += [line(each, "dim") for each in wrap(f"{case} not sampled at gpu sizes: {why}", width)]
    if evaluation.estimate:
        sizes = ", at the sizes of the sample" if evaluation.sampled else ", at the sizes counted above"
        lines += [
            EMPTY,
            (
                Span("roofline estimate, not a measurement", "warn"),
                Span(sizes, "dim"),
            ),
        ]
        lines += table(measures.ESTIMATE_COLUMNS, measures.estimate_rows(evaluation), width)
        # The sizes stand in the table.
        for basis in dict.fromkeys(each.basis.partition("; at ")[0] for each in evaluation.estimate):
            lines += [line(each, "dim") for each in wrap(f"basis: {basis}", width)]
    return lines
