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
from harness.evaluation import Estimate, GridFit, SampledTraffic
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
MUCH_IDLE = 0.25
"""Share of a device's places that a grid leaves empty from which it is worth a word."""
CLOSE = 0.8
"""Share of a tolerance in use from which it is worth a word."""
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


@dataclass(frozen=True, slots=True)
class TrafficFacts:
    """Bytes of one case: sampled at its `gpu` sizes, or counted by the interpreter at its `cpu` sizes. All are bounds."""

    case: str
    requested_bytes: int
    unique_bytes: int
    """At most."""
    minimal_bytes: int
    distinct: str
    """The bounds on distinct bytes, in words."""
    die_bytes: int | None = None
    """Distinct bytes of each die, all dies together, at most; `None` where nothing was sampled."""
    sampled: str = ""
    """`11 of 1024 programs`; empty where every one was counted."""

    @property
    def ratio(self) -> float | None:
        """Requested over minimal."""
        return self.requested_bytes / self.minimal_bytes if self.minimal_bytes else None


@dataclass(frozen=True, slots=True)
class RooflineFacts:
    """How far one case is from its roofline."""

    estimate: Estimate
    small: bool
    """Whether it is of the interpreter's sizes."""
    measured_us: float | None
    """Latency on the device; `None` where nothing was timed."""

    @property
    def spread(self) -> float | None:
        """Upper over lower bound."""
        return self.estimate.high_us / self.estimate.low_us if self.estimate.low_us > 0 else None

    @property
    def distance(self) -> float | None:
        """Measured latency over the lower bound; 1 is the roofline itself."""
        if self.measured_us is None or self.estimate.low_us <= 0:
            return None
        return self.measured_us / self.estimate.low_us


@dataclass(frozen=True, slots=True)
class FitFacts:
    """How one grid fills a target's reference device."""

    target: str
    kernel: str
    fit: GridFit


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
    roofline: tuple[RooflineFacts, ...]
    traffic: tuple[TrafficFacts, ...]
    sampled: bool
    """Whether `traffic` was sampled at `gpu` sizes."""
    resources: tuple[ResourceFacts, ...]
    resources_left_out: int
    fits: tuple[FitFacts, ...]
    fits_left_out: int
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
        notes=evaluation.notes[:NOTES],
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
    traffic = traffic_facts(evaluation)
    resources, fits = grouped(evaluation), grid_fits(evaluation)
    return Measurements(
        summary=achieved(evaluation),
        evaluation=evaluation,
        roofline=roofline(evaluation),
        traffic=traffic,
        sampled=bool(evaluation.sampled),
        resources=resources[:RESOURCE_ROWS],
        resources_left_out=max(0, len(resources) - RESOURCE_ROWS),
        fits=fits[:RESOURCE_ROWS],
        fits_left_out=max(0, len(fits) - RESOURCE_ROWS),
        standouts=tuple(standouts(evaluation, traffic)),
    )


def traffic_facts(evaluation: Evaluation) -> tuple[TrafficFacts, ...]:
    """Bytes by case: those sampled at `gpu` sizes, else those that the interpreter counted."""
    if evaluation.sampled:
        return tuple(map(sampled_facts, evaluation.sampled))
    facts = []
    for each in evaluation.traffic:
        unique = each.unique_read_bytes + each.unique_write_bytes
        facts.append(
            TrafficFacts(
                case=each.case,
                requested_bytes=each.requested_read_bytes + each.requested_write_bytes,
                unique_bytes=unique,
                minimal_bytes=each.minimal_bytes,
                distinct=byte_words(unique),
            )
        )
    return tuple(facts)


def sampled_facts(traffic: SampledTraffic) -> TrafficFacts:
    """Of one case at its `gpu` sizes."""
    low, high = traffic.unique_low_bytes, traffic.unique_high_bytes
    whole = traffic.sampled >= traffic.programs
    return TrafficFacts(
        case=traffic.case,
        requested_bytes=traffic.requested_read_bytes + traffic.requested_write_bytes,
        unique_bytes=high,
        minimal_bytes=traffic.minimal_bytes,
        distinct=byte_words(high) if low == high else f"{byte_words(low)} to {byte_words(high)}",
        die_bytes=traffic.die_bytes,
        sampled="" if whole else f"{traffic.sampled} of {traffic.programs} programs",
    )


def byte_words(amount: int) -> str:
    """`536.9 MB`: decimal units, four digits; small amounts to the byte."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= 10 * size:
            return f"{amount / size:.4g} {unit}"
    return f"{amount} B"


def roofline(evaluation: Evaluation) -> tuple[RooflineFacts, ...]:
    """Bounds by target and case; beside those of the device's own target, which comes first, what was measured."""
    own = evaluation.estimate[0].target if evaluation.estimate else ""
    measured = {each.case: each.candidate_ms * 1000 for each in evaluation.latency}
    return tuple(
        RooflineFacts(
            estimate=each,
            small=each.case in evaluation.not_sampled,
            measured_us=measured.get(each.case) if each.target == own else None,
        )
        for each in evaluation.estimate
    )


def grid_fits(evaluation: Evaluation) -> tuple[FitFacts, ...]:
    """Of every launch that can run, the same grid once; first those whose emptiness costs most, as far as is known."""
    costs = case_us(evaluation)
    found: dict[tuple[object, ...], FitFacts] = {}
    for target, kernels in evaluation.resources.items():
        for kernel in kernels:
            for fit in kernel.fits:
                found.setdefault((target, kernel.kernel, fit), FitFacts(target, kernel.kernel, fit))
    return tuple(
        sorted(found.values(), key=lambda each: -each.fit.idle * costs.get((each.target, each.fit.case), 0.0))
    )


def case_us(evaluation: Evaluation) -> dict[tuple[str, str], float]:
    """The least that each case takes on each target, in microseconds, by the roofline."""
    return {(each.target, each.case): each.low_us for each in evaluation.estimate}


def achieved(evaluation: Evaluation) -> str:
    """What a correct kernel achieved, on one line: measured where it was, and else what is known."""
    if evaluation.speedup is not None:
        devices = ", ".join(sorted({each.device for each in evaluation.latency})) or evaluation.device
        words = f"{evaluation.speedup:.3f}x the timing baseline, measured on {devices}"
        far = [distance for each in roofline(evaluation) if (distance := each.distance) and not each.small]
        return f"{words}; {fmean_log(far):.2f} times the roofline's estimated bound" if far else words
    parts = []
    ratios = [
        each.high_us / each.low_us for each in evaluation.estimate if min(each.low_us, each.high_us) > 0
    ]
    if ratios:
        parts.append(
            f"estimate, not a measurement: upper over lower roofline bound {fmean_log(ratios):.2f}, mean over cases"
        )
    traffic = traffic_facts(evaluation)
    requested = sum(each.requested_bytes for each in traffic)
    minimal = sum(each.minimal_bytes for each in traffic)
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
        least = "at least " if evaluation.sampled else ""
        words.append(
            f"Case {worst.case} requests {worst.ratio:.2f} times the minimal bytes; "
            f"each distinct byte is requested {least}{again:.2f} times on average."
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
    words += empty_places(evaluation)
    words += close_calls(evaluation)
    words += [
        f"{name} of `{kernel.kernel}` on {target}: {kernel.failure}"
        for target, kernel in kernels
        if kernel.failure and (name := config_name(kernel))
    ][:NOTES]
    words += evaluation.notes[:NOTES]
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


def config_name(kernel: KernelResources) -> str:
    """`Config BLOCK=64 num_warps=4`."""
    return "Config " + " ".join(f"{name}={value}" for name, value in kernel.config.items())


def empty_places(evaluation: Evaluation) -> list[str]:
    """The grid of the first target whose empty places cost most, where they are many."""
    own = next(iter(evaluation.resources), "")
    costs = case_us(evaluation)
    # Where a microsecond is the least, launching is what costs, and no grid changes that.
    found = [
        each
        for each in grid_fits(evaluation)
        if each.target == own and each.fit.idle >= MUCH_IDLE and costs.get((own, each.fit.case), 0.0) >= 1
    ]
    if not found:
        return []
    kernel, fit = found[0].kernel, found[0].fit
    if fit.workgroups < fit.compute_units:
        words = f"Case {fit.case} launches {fit.workgroups} workgroups of `{kernel}` on {fit.compute_units} units of {own}"
        return [f"{words}: the others do nothing."]
    rounds = f"{fit.rounds} rounds, the last of them" if fit.rounds > 1 else "one round, which is"
    words = f"Case {fit.case} fills {own} with `{kernel}` in {rounds} {fit.tail_idle:.0%} empty"
    return [f"{words}; over all, {fit.idle:.0%} of the places have no work."]


def close_calls(evaluation: Evaluation) -> list[str]:
    """The output that uses most of its tolerance, where it is much."""
    worst = max(evaluation.margins, key=lambda each: each.used, default=None)
    if worst is None or worst.used < CLOSE:
        return []
    return [
        f"Output `{worst.output}` of case {worst.case} uses {worst.used:.0%} of its tolerance: any less precision fails."
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
