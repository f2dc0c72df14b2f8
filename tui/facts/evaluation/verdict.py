"""The verdict: what is wrong and where, or how fast and how sure; then everything that the judge remarks."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from harness import ErrorReport, Evaluation, Finding, Mismatch, Verdict
from harness.wire.device import is_cpu
from sessions.names import stage_word
from sessions.state.findings import finding_words, findings_of, located
from sessions.state.speed import missing_speed, speed_of
from sessions.state.state import AttemptState, InstanceState
from tui.facts.endings import ending_words
from tui.facts.evaluation.counted import traffic_words
from tui.facts.tables import Cell, Table, named_values
from tui.facts.vocabulary import NO_GPU, count, counted, speed_style, verdict_style, words

from .certainty import against_words, exam_of, tolerance_words
from .times import missing_words

FILE = "kernel.py"
"""The judge's name for the candidate's file."""
FRAME = re.compile(r'^\s*File "(?:[^"]*/)?kernel\.py", line (\d+)')
"""A frame of a trace that is in the candidate."""
OWN_TRACE = re.compile(
    r"(?:\n*[^\n]*above exception[^\n]*:\n\n)?"
    r'Traceback \(most recent call last\):\n(?:  File "harness/[^\n]*\n(?:    [^\n]*\n)*)+\S[^\n]*\n?'
)
"""A trace that has frames of the judge alone, of a process that was ended."""
Facts = tuple[Cell, ...]
"""Facts of one line, each in its style; none is empty."""


def headline(evaluation: Evaluation, *, baseline: str = "", file: str = FILE) -> str:
    """
    Return the verdict on one line: with speed and tolerance if it is `correct`, else with the reason.

    `file` is the name of the candidate's file, if the reader knows it by another name than the judge.
    """
    verdict = f"{evaluation.verdict}{only_words(evaluation)}"
    error = evaluation.error
    if error is not None:
        line = f"{verdict}: {error.first_line}"
        return line if error.line is None else f"{line} ({file} line {error.line})"
    speed = speed_of(evaluation)
    facts = (
        verdict,
        finding_words(evaluation.findings),
        "" if speed is None else f"{speed.words}{against_words(evaluation, baseline)}",
    )
    return "; ".join(filter(None, (", ".join(filter(None, facts)), tolerance_words(evaluation))))


def only_words(evaluation: Evaluation) -> str:
    """Return ` in case fp32 only, no verdict about the task` if a person chose cases; empty if all cases ran."""
    cases = evaluation.only_cases
    if not cases:
        return ""
    return f" in case{'s' if len(cases) > 1 else ''} {', '.join(cases)} only, no verdict about the task"


def failure_words(evaluation: Evaluation) -> str:
    """Return the verdict with the first line of its error: `wrong: case fp32: ...`."""
    error = evaluation.error
    return words(evaluation.verdict) + (f": {error.first_line}" if error is not None else "")


def verdict_facts(attempt: AttemptState, instance: InstanceState | None) -> tuple[Facts, Facts]:
    """Return the verdict as two lines of facts: first what to do about an error, else speed, then how sure."""
    evaluation = attempt.evaluation
    if evaluation is None:
        return _known(_before_verdict(attempt, instance)), ()
    if evaluation.verdict is Verdict.CORRECT:
        first, second = _correct(attempt, evaluation, instance)
    else:
        first, second = _failed(attempt, evaluation)
    return _known(first), _known(second)


def _known(facts: list[Cell]) -> Facts:
    return tuple(fact for fact in facts if fact.text)


def _before_verdict(attempt: AttemptState, instance: InstanceState | None) -> list[Cell]:
    if instance is not None and instance.finished:
        return [Cell(f"no verdict: {ending_words(instance.finished)}", "dim")]
    if attempt.stage:
        passed = ", ".join(stage_word(stage.name) for stage in attempt.stages if stage.ok)
        return [
            Cell(f"judge: {stage_word(attempt.stage)}", "busy"),
            Cell(f"passed: {passed}" if passed else "", "dim"),
        ]
    call = attempt.calls[-1] if attempt.calls else None
    if call is not None and call.failed:
        return [Cell("no reply", "bad"), Cell(call.failed, "bad")]
    return [Cell("no verdict yet", "dim")]


def _correct(
    attempt: AttemptState, evaluation: Evaluation, instance: InstanceState | None
) -> tuple[list[Cell], list[Cell]]:
    timed = attempt.timed_evaluation or evaluation
    findings, exam = findings_of(attempt), exam_of(attempt, instance)
    verdict = Cell("correct", "bold")
    if findings:
        verdict = Cell(f"correct, {counted(len(findings), 'finding')}", "warn bold")
    return (
        [verdict, *speed_facts(timed), Cell(located(findings[0]) if findings else "", "warn")],
        [
            Cell(tolerance_words(evaluation)),
            Cell("" if exam is None else exam.brief, "" if exam is None else exam.style),
            Cell("" if speed_of(timed) is None else missing_words(timed), "dim"),
        ],
    )


def speed_facts(evaluation: Evaluation) -> list[Cell]:
    """The speedup with interval, baseline and GPU; without one the traffic, then the reason."""
    speed = speed_of(evaluation)
    if speed is None:
        reason = NO_GPU if is_cpu(evaluation.device) else f"no speedup: {missing_speed(evaluation)}"
        return [Cell(traffic_words(evaluation)), Cell(reason, "dim")]
    devices = ", ".join(dict.fromkeys(latency.device for latency in evaluation.latency))
    return [Cell(f"{speed.words}{against_words(evaluation)} on GPU {devices}", speed_style(speed))]


def _failed(attempt: AttemptState, evaluation: Evaluation) -> tuple[list[Cell], list[Cell]]:
    error, numbers = evaluation.error, error_lines(attempt)
    place = f" line {numbers[0]}" if numbers else ""
    verdict = Cell(f"{words(evaluation.verdict).upper()}{place}", f"{verdict_style(evaluation.verdict)} bold")
    beside = next(filter(None, map(_interpreter_words, evaluation.findings)), "")
    if error is None:
        return [verdict], []
    if error.mismatch is None:
        return [verdict, Cell(beside, "warn"), Cell(error.first_line)], [Cell(error.cases)]
    wrong = error.mismatch
    elements = math.prod(wrong.expected_shape)
    extent = f"{round(wrong.wrong_share * elements):,} of {count(elements)} elements wrong"
    where = wrong.pattern[0] if wrong.pattern else ""
    return (
        [verdict, Cell(beside, "warn"), Cell(f"case {wrong.case}"), Cell(_element(wrong))],
        [Cell(extent), Cell(error.cases), Cell(where, "dim")],
    )


def _interpreter_words(finding: Finding) -> str:
    """Return what the interpreter refuses beside the GPU: `interpreter: no Triton kernel was launched`; else empty."""
    if not finding.kind.startswith("interpreter_"):
        return ""
    reason = finding.message.rpartition(": ")[2].partition(";")[0]
    return f"interpreter: {' '.join(reason.split())}"


def refusal_words(evaluation: Evaluation) -> str:
    """Return in plain words that a case of a failed candidate launched no kernel in the interpreter; else empty."""
    finding = next((found for found in evaluation.findings if found.kind == "interpreter_no_launch"), None)
    if finding is None or evaluation.error is None:
        return ""
    case = finding.message.partition(": no Triton kernel")[0].partition("rejected: ")[2]
    return (
        f"The judge also ran it in Triton's interpreter: {case or 'a case'} launched no Triton kernel. So no kernel computed "
        "that result; it may be stored from an earlier call. Every case must launch a kernel that does the work."
    )


def _element(wrong: Mismatch) -> str:
    index = ", ".join(map(str, wrong.index))
    return f"{wrong.output}[{index}]: expected {wrong.expected}, got {wrong.got}"


def frame_line(text: str) -> int | None:
    """Return the candidate's line of a line of a trace; `None` if it is no frame of the candidate."""
    frame = FRAME.match(text)
    return int(frame[1]) if frame else None


def error_lines(attempt: AttemptState) -> list[int]:
    """Return the lines, 1-based, each once: that of the error first, then those of its trace and of findings."""
    evaluation = attempt.evaluation
    if evaluation is None or evaluation.error is None:
        return []
    error = evaluation.error
    lines = [error.line, *map(frame_line, error.trace.split("\n"))]
    lines += [finding.line for finding in evaluation.findings]
    return list(dict.fromkeys(number for number in lines if number is not None))


def mismatch_table(wrong: Mismatch, *, figures: bool = True) -> Table:
    """Return size and kind of an output's error; without `figures` only what the message of the error does not say."""
    sizes = (
        ("largest error", wrong.largest_error or "no finite pair"),
        ("NaN", _pair(f"{wrong.nan_got:,}", f"{wrong.nan_expected:,}")),
        ("Inf", _pair(f"{wrong.inf_got:,}", f"{wrong.inf_expected:,}")),
        *((name, f"{value:.6g}") for name, value in wrong.metrics.items()),
    )
    shown = [(name, value) for name, value in sizes if figures and value != "0"]
    kind = (
        ("shape", _pair(list(wrong.shape), list(wrong.expected_shape))),
        ("dtype", _pair(wrong.dtype, wrong.expected_dtype)),
    )
    return named_values("", (*shown, *kind))


def _pair(got: object, expected: object) -> str:
    return f"{got}" if got == expected else f"{got}, expected {expected}"


def trace_text(error: ErrorReport, file: str = FILE) -> str:
    """Return the trace without the message at its end, which the first line of the verdict already has."""
    lines = error.trace.replace(f'"{FILE}"', f'"{file}"').rstrip().split("\n")
    while lines and (not lines[-1].strip() or _is_said(lines[-1], error.message)):
        lines.pop()
    return "\n".join(lines)


def _is_said(line: str, message: str) -> bool:
    """True if the message has this line of a trace, with or without the exception's name."""
    text, without_name = line.strip(), line.partition(": ")[2]
    return text in message or (line[0] != " " and without_name != "" and without_name in message)


def error_table(error: ErrorReport | None, file: str = FILE) -> Table:
    """Return what the first line of an error does not say: shapes, pattern, other failures and trace; empty without an error."""
    if error is None:
        return Table("")
    title, trace = f"error ({error.kind})", trace_text(error, file)
    if error.mismatch is None:
        return Table(title).with_sentences(error.message.partition("\n")[2], trace)
    wrong = mismatch_table(error.mismatch, figures=False)
    return replace(
        wrong.with_sentences(*error.mismatch.pattern, *error.further, error.cases, trace), title=title
    )


def compile_errors(evaluation: Evaluation) -> list[Table]:
    """Return each target that the candidate does not compile for, with the compiler's message."""
    message_of_error = "" if evaluation.error is None else evaluation.error.message
    return [
        Table(f"does not compile for {target}").with_sentences(message, style="warn")
        for target, message in evaluation.compile_errors.items()
        if message.strip() not in message_of_error
    ]


def remark_tables(evaluation: Evaluation, exam: Evaluation | None = None) -> list[Table]:
    """Return findings of the verdict and of the exam, notes, and what the candidate printed."""
    of_exam = () if exam is None else exam.findings
    return [
        Table("findings").with_sentences(*(finding.text for finding in evaluation.findings)),
        Table("findings of the exam").with_sentences(*(finding.text for finding in of_exam)),
        Table("notes").with_sentences(*evaluation.notes),
        Table("printed by the candidate").with_sentences(OWN_TRACE.sub("", evaluation.printed)),
    ]
