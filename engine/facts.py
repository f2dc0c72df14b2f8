"""What an evaluation tells a model: the judge's data as facts for a prompt, each with its unit, none invented.

A fact that is not known is `None` or an empty tuple, and the templates leave its line out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from harness import Evaluation, KernelResources, Target, Traffic, Verdict
from harness.estimate import estimate
from sessions.metrics import rank
from suites import Case, Task, task_cost

from .tolerances import tolerance_words

TRACE_LINES = 40
MESSAGE_CHARACTERS = 3000
RESOURCE_ROWS = 12
NARROW_BITS = 64
"""Loads of fewer bits a lane leave bandwidth unused."""
MUCH_TRAFFIC = 1.5
"""Requested over minimal bytes from which the ratio is worth a word."""


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


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """Bytes of one case as the interpreter counted them, at its small sizes."""

    case: str
    requested_bytes: int
    unique_bytes: int
    minimal_bytes: int

    @property
    def ratio(self) -> float | None:
        """Requested over minimal."""
        return self.requested_bytes / self.minimal_bytes if self.minimal_bytes else None


@dataclass(frozen=True, slots=True)
class ResourceFacts:
    """One compiled kernel, and the cases that share its figures."""

    target: str
    kernel: KernelResources
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measurements:
    """What is known of a correct candidate's performance."""

    summary: str
    """One line."""
    evaluation: Evaluation
    traffic: tuple[TrafficFacts, ...]
    resources: tuple[ResourceFacts, ...]
    resources_left_out: int
    standouts: tuple[str, ...]
    """What in these figures is worth acting on, one sentence each."""


def case_facts(task: Task, target: Target) -> tuple[CaseFacts, ...]:
    """The open cases of the task with their cost by the task's own model. `BadTask` where its `cost.py` fails."""
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
        bound = estimate(nothing, cost, case.dtype, target)
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


def measurements(candidate: JudgedCandidate) -> Measurements:
    """What is known of a correct candidate's performance."""
    evaluation = candidate.evaluation
    traffic = tuple(
        TrafficFacts(
            case=each.case,
            requested_bytes=each.requested_read_bytes + each.requested_write_bytes,
            unique_bytes=each.unique_read_bytes + each.unique_write_bytes,
            minimal_bytes=each.minimal_bytes,
        )
        for each in evaluation.traffic
    )
    resources = grouped(evaluation)
    return Measurements(
        summary=achieved(evaluation),
        evaluation=evaluation,
        traffic=traffic,
        resources=resources[:RESOURCE_ROWS],
        resources_left_out=max(0, len(resources) - RESOURCE_ROWS),
        standouts=tuple(standouts(evaluation, traffic)),
    )


def achieved(evaluation: Evaluation) -> str:
    """What a correct kernel achieved, on one line: measured where it was, and else what is known."""
    if evaluation.speedup is not None:
        devices = ", ".join(sorted({each.device for each in evaluation.latency})) or evaluation.device
        return f"{evaluation.speedup:.3f}x the timing baseline, measured on {devices}"
    parts = []
    ratios = [
        each.high_us / each.low_us for each in evaluation.estimate if min(each.low_us, each.high_us) > 0
    ]
    if ratios:
        parts.append(
            f"estimate, not a measurement: upper over lower roofline bound {fmean_log(ratios):.2f}, mean over cases"
        )
    requested = sum(each.requested_read_bytes + each.requested_write_bytes for each in evaluation.traffic)
    minimal = sum(each.minimal_bytes for each in evaluation.traffic)
    if minimal:
        parts.append(f"requests {requested / minimal:.2f} times the minimal bytes")
    kernels = [kernel for rows in evaluation.resources.values() for kernel in rows]
    vector = sum(kernel.vgpr_spills or 0 for kernel in kernels)
    scalar = sum(kernel.sgpr_spills or 0 for kernel in kernels)
    if kernels:
        parts.append(
            f"{vector} vector and {scalar} scalar registers spilled" if vector or scalar else "no spills"
        )
    occupancy = [kernel.occupancy for kernel in kernels if kernel.occupancy is not None]
    if occupancy:
        parts.append(f"lowest occupancy {min(occupancy):g}")
    return "; ".join(parts) or "correct; nothing is known of its speed"


def fmean_log(ratios: Sequence[float]) -> float:
    """Geometric mean."""
    return math.exp(math.fsum(math.log(ratio) for ratio in ratios) / len(ratios))


def grouped(evaluation: Evaluation) -> tuple[ResourceFacts, ...]:
    """Compiled kernels, those that differ in nothing but the case put together; spilling ones first, then by target."""
    rows: dict[tuple[object, ...], list[tuple[str, KernelResources]]] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            key = (target, kernel.kernel, kernel.binary_sha256, tuple(sorted(kernel.config.items())))
            rows.setdefault(key, []).append((target, kernel))
    facts = [
        ResourceFacts(target=same[0][0], kernel=same[0][1], cases=tuple(kernel.case for _, kernel in same))
        for same in rows.values()
    ]
    return tuple(sorted(facts, key=lambda each: -(each.kernel.vgpr_spills or 0)))


def standouts(evaluation: Evaluation, traffic: Sequence[TrafficFacts]) -> list[str]:
    """What in the figures is worth acting on."""
    words = []
    worst = max((each for each in traffic if each.ratio), key=lambda each: each.ratio or 0.0, default=None)
    if worst and worst.ratio and worst.ratio >= MUCH_TRAFFIC:
        again = worst.requested_bytes / max(1, worst.unique_bytes)
        words.append(
            f"Case {worst.case} requests {worst.ratio:.2f} times the minimal bytes; "
            f"each distinct byte is requested {again:.2f} times on average."
        )
    kernels = [(target, kernel) for target, rows in evaluation.resources.items() for kernel in rows]
    for target, kernel in kernels:
        if kernel.vgpr_spills or kernel.spill_bytes:
            amount = (
                f"{kernel.vgpr_spills} vector registers"
                if kernel.vgpr_spills
                else f"{kernel.spill_bytes} bytes"
            )
            words.append(
                f"`{kernel.kernel}` spills {amount} on {target}: a smaller tile or more warps would avoid it."
            )
            break
    words += narrow_loads(kernels)
    if any(each.dot_flops for each in evaluation.traffic):
        for target, kernel in kernels:
            if (
                kernel.matrix_instructions == 0
                and sum(k.matrix_instructions or 0 for t, k in kernels if t == target) == 0
            ):
                words.append(
                    f"No matrix instruction was generated on {target} although the kernel uses tl.dot."
                )
                break
    return words


def narrow_loads(kernels: Sequence[tuple[str, KernelResources]]) -> list[str]:
    """One sentence a kernel about the cases in which even its widest loads are narrow."""
    cases: dict[tuple[str, str, int], list[str]] = {}
    for target, kernel in kernels:
        widest = max((int(bits) for bits in kernel.load_widths), default=None)
        if widest is not None and widest < NARROW_BITS:
            cases.setdefault((target, kernel.kernel, widest), []).append(kernel.case)
    return [
        f"In {', '.join(dict.fromkeys(named))} the widest global load of `{name}` on {target} is {widest} bits a lane "
        "(128 is possible): offsets are not seen to be contiguous and aligned there, or the block is too small."
        for (target, name, widest), named in cases.items()
    ]


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
