"""Facts for a prompt, taken from the judge's data: each with its unit, none invented.

An unknown fact is `None` or an empty tuple; the templates leave its line out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from engine.errors import one_line
from harness import Evaluation, Target, Verdict
from harness.hardware.product import Product
from harness.stages.full_sizes import full_size
from harness.wire.messages.guest import GPU_FAULT
from sessions.state.speed import are_comparable
from suites import Case, Output, Task, baseline_source, task_cost
from suites.source.python_source import source_lines

from .comparison import better_elsewhere
from .judged import JudgedCandidate

TRACE_LINES = 40
MESSAGE_CHARACTERS = 4000
LINE_CHARACTERS = 240
"""Longest message of an earlier failure."""
SAME = 80
"""Characters of two messages that are compared."""
NOTES = 6


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """One case, and the least work of any kernel at its full size."""

    case: Case
    needs: str
    """`537 MB`, or `550 GFLOP` if the operations take longer at the first target's peaks; empty if unknown."""
    is_long: bool
    """True if its work is known to take longer than a launch."""
    is_short: bool
    """True if its work is known to take less time than a launch."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Why a candidate failed."""

    verdict: str
    stages: str
    """`static ok, call ok, compile failed`."""
    failed_stage: str
    """Empty if no stage failed."""
    kind: str
    message: str
    line: int | None
    line_text: str
    """Text of the candidate's line."""
    trace: str
    mismatch: tuple[str, ...]
    """The pattern of the wrong values, one sentence each."""
    notes: tuple[str, ...]
    """Findings and notes of the judge besides the error."""


def case_facts(task: Task, target: Target, product: Product | None = None) -> tuple[CaseFacts, ...]:
    """Returns the open cases with their cost by the task's own model.

    Peaks are those of `product` if it has this target. Raises `BadTask` if the task's `cost.py` fails.
    """
    facts = []
    for case in task.open_cases:
        cost = task_cost(task, case.gpu, case.dtype)
        need = full_size(task, case, target, product)
        is_compute = need.needed_bytes > cost.moved_bytes
        needs = f"{cost.flops / 1e9:.3g} GFLOP" if is_compute else f"{cost.moved_bytes / 1e6:.3g} MB"
        is_known = need.needed_bytes > 0
        facts.append(CaseFacts(case, needs if is_known else "", need.is_long, is_known and not need.is_long))
    return tuple(facts)


def outputs_of_calls(task: Task) -> tuple[Output, ...]:
    """Returns the task's outputs. In a recorded task, an output with several dtypes has the dtype `input`."""
    if task.script is None:
        return task.outputs
    dtypes: dict[str, set[str]] = {}
    for case in task.open_cases:
        for output in task.outputs_of(case):
            dtypes.setdefault(output.name, set()).add(output.dtype)
    return tuple(
        replace(output, dtype="input") if len(dtypes.get(output.name, ())) > 1 else output
        for output in task.outputs
    )


def instruction_of(task: Task) -> str:
    """Returns the instruction; for a task in a package also the place of the module, and what it may import from there."""
    package = task.package
    if package is None:
        return task.instruction
    original = baseline_source(task)
    place = package.file.relative_to(package.root)
    imports = [
        f"`{module}`" + (f" ({', '.join(f'`{name}`' for name in names)})" if names else "")
        for module, names in package.imports(original).items()
    ]
    within = f" of the package `{place.parts[0]}`" if package.parent else ""
    words = f"The module is `{place}`{within}: it is imported as `{package.module}`, and every import of that name gets your module."
    if imports:
        words += (
            f" It may import from the package what the original imports: {', '.join(imports)}. These are helpers: a kernel of "
            "another module may not do the work."
        )
    if package.reads_files(original):
        words += " It may read the package's files by paths from `__file__`, as the original does."
    return f"{task.instruction.strip()}\n\n{words}"


def error_facts(candidate: JudgedCandidate) -> ErrorFacts:
    """Returns why the candidate failed. Raises `ValueError` if its evaluation has no error."""
    evaluation = candidate.evaluation
    error = evaluation.error
    if error is None:
        raise ValueError(f"{candidate.attempt} is {evaluation.verdict}: it has no error")
    lines = source_lines(candidate.source)
    in_source = error.line is not None and 0 < error.line <= len(lines)
    return ErrorFacts(
        verdict=str(evaluation.verdict),
        stages=stage_words(evaluation),
        failed_stage=next((stage.name for stage in evaluation.stages if stage.ok is False), ""),
        kind=error.kind,
        message=shorten(error.message, MESSAGE_CHARACTERS),
        line=error.line,
        line_text=lines[error.line - 1].strip() if in_source and error.line else "",
        trace="\n".join(error.trace.splitlines()[-TRACE_LINES:]),
        mismatch=mismatch_words(evaluation),
        notes=(
            *fault_notes(evaluation),
            *(finding.text for finding in evaluation.findings),
            *evaluation.notes,
        )[:NOTES],
    )


def fault_notes(evaluation: Evaluation) -> tuple[str, ...]:
    """Returns what the line and the message of a fault of the GPU do not say; empty for other errors."""
    if evaluation.error is None or evaluation.error.kind != GPU_FAULT:
        return ()
    late = "a GPU reports a fault late: any launch of the call up to the named line can be the cause, not only the launch there"
    return (
        late,
        *(
            f"{case} in the interpreter: {why}"
            for case, why in evaluation.not_sampled.items()
            if case in evaluation.raised_at_full_sizes
        ),
    )


def failure_line(candidate: JudgedCandidate) -> str:
    """Returns one line about a failed candidate: its name, verdict, stage and the first sentence of the message."""
    if candidate.rejection is not None:
        return (
            f"{candidate.attempt}: rejected by a person: {one_line(candidate.rejection) or 'no reason given'}"
        )
    error = error_facts(candidate)
    stage = f" in {error.failed_stage}" if error.failed_stage else ""
    first = candidate.evaluation.error.first_line if candidate.evaluation.error else ""
    return f"{candidate.attempt}: {error.verdict}{stage}: {shorten(first, LINE_CHARACTERS)}"


def repeats(failures: Sequence[JudgedCandidate]) -> int:
    """Returns how many of the latest failures in a row are the same error, numbers aside; oldest first."""
    count = 0
    for failure in reversed(failures):
        if failure.rejection is not None or error_kind(failure) != error_kind(failures[-1]):
            break
        count += 1
    return count


def error_kind(candidate: JudgedCandidate) -> tuple[str, str, str]:
    """Returns what makes two errors the same: verdict, kind, and the message without numbers."""
    error = candidate.evaluation.error
    message = one_line(error.message) if error else ""
    return (
        str(candidate.evaluation.verdict),
        error.kind if error else "",
        re.sub(r"[\d.]+", "#", message)[:SAME],
    )


def stage_words(evaluation: Evaluation) -> str:
    """Returns the state of each stage in words."""
    words = {True: "passed", False: "failed", None: "not reached"}
    return ", ".join(f"{stage.name} {words[stage.ok]}" for stage in evaluation.stages)


def mismatch_words(evaluation: Evaluation) -> tuple[str, ...]:
    """Returns hints from NaN and Inf in a wrong output; the judge's message already says where it is wrong."""
    mismatch = evaluation.error.mismatch if evaluation.error else None
    if mismatch is None:
        return ()
    words = []
    if mismatch.nan_got > mismatch.nan_expected:
        words.append(
            "NaN came out where none is expected: 0/0, inf - inf, a masked lane that took part, or memory never written."
        )
    if mismatch.inf_got > mismatch.inf_expected:
        words.append("Inf came out where none is expected: an exponential or a float16 value overflowed.")
    return tuple(words)


def lost_ground(before: JudgedCandidate, now: JudgedCandidate) -> str:
    """Returns one sentence if `now` ranks below its base `before`; else an empty string."""
    if now.rank >= before.rank:
        return ""
    if before.evaluation.verdict is Verdict.CORRECT:
        if now.evaluation.verdict is Verdict.CORRECT:
            return f"{now.attempt} is correct, but {below_words(now, before)}."
        return f"{now.attempt} broke what worked in {before.attempt}."
    return (
        f"{now.attempt} passed fewer stages than {before.attempt} ({stage_words(now.evaluation)}; "
        f"before: {stage_words(before.evaluation)})."
    )


def below_words(lower: JudgedCandidate, higher: JudgedCandidate) -> str:
    """Returns why a correct candidate ranks below another: `ranks below softmax#1/1: 1.31x against 1.44x; slower in fp32`."""
    if not are_comparable(lower.evaluation, higher.evaluation):
        return f"ranks below {higher.attempt}; its figures are from other hardware or software"
    worse = better_elsewhere(lower.evaluation, [(higher.attempt, higher.evaluation)])
    slower = "slower" if lower.evaluation.latency else "worse"
    cases = f"; {slower} in {', '.join(worse)}" if worse else ""
    untimed = untimed_beside(lower, higher)
    missing = f"; not timed, and counted as 1.00x, in {', '.join(untimed)}" if untimed else ""
    return f"ranks below {higher.attempt}: {lower.why_below(higher)}{cases}{missing}"


def untimed_beside(lower: JudgedCandidate, higher: JudgedCandidate) -> list[str]:
    """Returns the cases in which only `higher` was timed; none if `lower` was not timed at all."""
    timed = {latency.case for latency in lower.evaluation.latency}
    return [latency.case for latency in higher.evaluation.latency if timed and latency.case not in timed]


def shorten(text: str, characters: int) -> str:
    """Returns the text with its middle left out if it has more than `characters`."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
