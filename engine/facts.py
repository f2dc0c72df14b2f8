"""What an evaluation tells a model: the judge's data as facts for a prompt, each with its unit, none invented.

A fact that is not known is `None` or an empty tuple, and the templates leave its line out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness import Evaluation, Target, Traffic, Verdict
from harness.hardware.product import Product
from harness.stages.estimates.roofline import estimate
from sessions.metrics import rank
from suites import Case, Task, task_cost

from .figures import achieved
from .tolerances import tolerance_words

TRACE_LINES = 40
MESSAGE_CHARACTERS = 3000
NOTES = 6


class JudgedCandidate(Protocol):
    """A candidate and what the judge said of it."""

    @property
    def attempt(self) -> str:
        """Its name, `softmax#2/7`."""
        ...

    @property
    def source(self) -> str:
        """The module."""
        ...

    @property
    def strategy(self) -> str:
        """What its author set out to do; may be empty."""
        ...

    @property
    def evaluation(self) -> Evaluation:
        """The judge's answer."""
        ...


class FailedCandidate(JudgedCandidate, Protocol):
    """One that did not pass, or that a person turned down."""

    @property
    def reflection(self) -> str:
        """What the reflector made of it; empty while it was not asked."""
        ...

    @property
    def rejection(self) -> str | None:
        """A person's reason (it may be empty), where the judge passed it and a person did not."""
        ...


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """One case, and what its full size asks of any kernel on the first target."""

    case: Case
    minimal_bytes: int
    flops: int
    at_least_us: float | None
    """Roofline estimate that nothing can beat, without the launch; `None` where the target has no peak for the dtype."""
    limit: str
    """`memory` or `compute`: what bounds it; empty where that is not known."""


@dataclass(frozen=True, slots=True)
class ErrorFacts:
    """Why a candidate failed."""

    verdict: str
    stages: str
    """`static ok, call ok, compile failed`."""
    failed_stage: str
    """Empty where no stage failed."""
    kind: str
    message: str
    line: int | None
    line_text: str
    """The candidate's own line."""
    trace: str
    mismatch: tuple[str, ...]
    """What kind of wrong it is, one sentence each."""
    notes: tuple[str, ...]
    """Odd things that the judge saw beside the error."""


def case_facts(task: Task, target: Target, product: Product | None = None) -> tuple[CaseFacts, ...]:
    """The open cases of the task with their cost by the task's own model, and bounds on `product` where that is of the target. `BadTask` where its `cost.py` fails."""
    facts = []
    for case in task.open_cases:
        cost = task_cost(task, case.gpu, case.dtype)
        # The lower bound of an estimate knows only the cost; nothing was counted at this size.
        nothing = Traffic(
            case=case.name,
            sizes=case.gpu,
            requested_read_bytes=0,
            requested_write_bytes=0,
            unique_read_bytes=0,
            unique_write_bytes=0,
            minimal_bytes=cost.minimal_bytes,
            dot_flops=0,
            flops=cost.flops,
            launches=0,
            programs=0,
        )
        bound = estimate(nothing, cost, case.dtype, target, product)
        facts.append(
            CaseFacts(
                case=case,
                minimal_bytes=cost.minimal_bytes,
                flops=cost.flops,
                at_least_us=bound.low_us if bound else None,
                limit=bound.bound_low if bound else "",
            )
        )
    return tuple(facts)


def error_facts(candidate: JudgedCandidate) -> ErrorFacts:
    """Why the candidate failed. `ValueError` when its evaluation holds neither an error nor a failed verdict."""
    evaluation = candidate.evaluation
    error = evaluation.error
    if error is None:
        raise ValueError(f"{candidate.attempt} is {evaluation.verdict}: there is no error to tell")
    lines = candidate.source.splitlines()
    in_source = error.line is not None and 0 < error.line <= len(lines)
    return ErrorFacts(
        verdict=str(evaluation.verdict),
        stages=stage_words(evaluation),
        failed_stage=next((stage.name for stage in evaluation.stages if stage.ok is False), ""),
        kind=error.kind,
        message=shortened(error.message, MESSAGE_CHARACTERS),
        line=error.line,
        line_text=lines[error.line - 1].strip() if in_source and error.line else "",
        trace="\n".join(error.trace.splitlines()[-TRACE_LINES:]),
        mismatch=mismatch_words(evaluation),
        notes=(*(finding.text for finding in evaluation.findings), *evaluation.notes)[:NOTES],
    )


def stage_words(evaluation: Evaluation) -> str:
    """How far the candidate came."""
    words = {True: "passed", False: "failed", None: "not reached"}
    return ", ".join(f"{stage.name} {words[stage.ok]}" for stage in evaluation.stages)


def mismatch_words(evaluation: Evaluation) -> tuple[str, ...]:
    """What the pattern of a wrong output points to; nothing where no output was wrong."""
    found = evaluation.error.mismatch if evaluation.error else None
    if found is None:
        return ()
    words = []
    if found.shape == found.expected_shape and found.dtype == found.expected_dtype:
        if found.wrong_share >= 0.9:
            words.append(
                "Nearly every element is wrong: look at the formula, the scaling or the indexing, not at the edges."
            )
        elif found.wrong_share <= 0.05:
            words.append(
                "Only a few elements are wrong: look at the edges (masks, last block) and at extreme values."
            )
    if found.nan_got > found.nan_expected:
        words.append(
            "NaN came out where none is expected: 0/0, inf - inf, a masked lane that took part, or memory never written."
        )
    if found.inf_got > found.inf_expected:
        words.append("Inf came out where none is expected: an exponential or a float16 value overflowed.")
    if found.max_rel is not None and found.max_rel < 0.05 and found.wrong_share > 0.05:
        words.append(
            "Values are close and not close enough: an intermediate result is rounded too early or too coarsely."
        )
    return tuple(words)


def lost_ground(before: JudgedCandidate, now: JudgedCandidate) -> str:
    """One sentence where `now` came less far than what it was derived from; empty where it did not."""
    if rank(now.evaluation) >= rank(before.evaluation):
        return ""
    if before.evaluation.verdict is Verdict.CORRECT:
        if now.evaluation.verdict is Verdict.CORRECT:
            return (
                f"{now.attempt} is correct and lost ground against {before.attempt}: "
                f"{achieved(now.evaluation)}, where there was: {achieved(before.evaluation)}."
            )
        return f"{now.attempt} broke what worked in {before.attempt}."
    return (
        f"{now.attempt} came less far than {before.attempt} ({stage_words(now.evaluation)}, "
        f"where there was: {stage_words(before.evaluation)})."
    )


def shortened(text: str, characters: int) -> str:
    """The text, its middle left out where it is longer than that."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"


def precision(task: Task) -> tuple[str, ...]:
    """How close outputs must come, in words, by dtype."""
    return tuple(tolerance_words(task))
