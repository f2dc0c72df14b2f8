"""The winners of a session, their cases, and the tasks without a winner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness import Evaluation, Latency, Verdict
from harness.node.discovery import CPU
from harness.wire.latency import Bound
from sessions.names import split_attempt
from sessions.state.findings import finding_words, findings_of
from sessions.state.speed import attempt_speed, baseline_names, found_speed, missing_speed, timed_evaluation
from sessions.state.state import AttemptState, Decision, InstanceState, SessionState
from sessions.state.winners import accepted_attempt
from tui.facts.evaluation.roofs import roof_range, roof_share, shortest_us
from tui.facts.evaluation.spread import by_gpu_words
from tui.facts.evaluation.verdict import failure_words
from tui.facts.session_words import ending_words

from .model import CaseTime, Decided, EstimatedCase, Unsolved, Winner


def has_gpu(state: SessionState) -> bool:
    """True if the session judges on a GPU, or a time was measured in it."""
    planned = state.started.devices if state.started else ()
    return any(device != CPU.name for device in planned) or is_measured(state)


def is_measured(state: SessionState) -> bool:
    """True if a case of an attempt was timed."""
    return any(attempt.evaluation is not None and attempt.evaluation.latency for attempt in state.attempts())


def winners_of(state: SessionState, bests: dict[str, AttemptState]) -> tuple[Winner, ...]:
    """Return the winner of each solved task, fastest first; winners without times come last."""
    winners = [
        _winner(state, state.instances[split_attempt(attempt.attempt).instance], attempt)
        for attempt in bests.values()
        if attempt.verdict is Verdict.CORRECT
    ]
    return tuple(sorted(winners, key=lambda winner: -winner.speed.value if winner.speed else 0.0))


def _winner(state: SessionState, instance: InstanceState, attempt: AttemptState) -> Winner:
    evaluation = timed_evaluation(attempt)
    assert evaluation is not None, "a winner is judged"
    session = state.started.session if state.started else ""
    chosen = accepted_attempt(state, instance.task)
    return Winner(
        task=instance.task,
        attempt=attempt.attempt,
        origin=attempt.origin,
        base=attempt.base,
        strategy=" ".join(attempt.strategy.split()),
        speed=attempt_speed(attempt),
        no_speed=missing_speed(evaluation),
        before_exam=found_speed(attempt),
        confirmed=attempt.confirmation,
        accepted=attempt.decision is not None and attempt.decision.accepted,
        accepted_instead=chosen.attempt if chosen is not None and chosen is not attempt else "",
        waiting=attempt.waiting,
        findings=finding_words(findings_of(attempt)),
        against=baseline_names(evaluation.latency),
        device=_device_words(evaluation),
        by_gpu=by_gpu_words(attempt),
        roof=roof_range(evaluation),
        commit=attempt.commit,
        branch=f"{session}/{instance.task}/{instance.instance}",
        accepted_file=f"{instance.task}/kernel.py" if chosen is attempt else "",
    )


def decisions_of(state: SessionState) -> tuple[Decided, ...]:
    """Return the current decisions in the order in which they were made."""
    return tuple(
        sorted(
            (
                _decided(state, instance.task, attempt, attempt.decision)
                for instance in state.instances.values()
                for attempt in instance.attempts
                if attempt.decision is not None
            ),
            key=lambda decided: decided.wall,
        )
    )


def _decided(state: SessionState, task: str, attempt: AttemptState, decision: Decision) -> Decided:
    chosen = accepted_attempt(state, task)
    replaced = decision.accepted and chosen is not None and chosen is not attempt
    return Decided(
        attempt=attempt.attempt,
        verdict=attempt.verdict,
        accepted=decision.accepted,
        replaced_by=chosen.attempt if chosen is not None and replaced else "",
        why=" ".join(decision.why.split()),
        by=decision.by,
        wall=decision.wall,
    )


def _device_words(evaluation: Evaluation) -> str:
    """Return `0 MI300X`: the devices of the times, with their products; empty if nothing was timed."""
    products: dict[str, str] = {}
    for latency in evaluation.latency:
        products.setdefault(latency.device, latency.efficiency.product if latency.efficiency else "")
    return ", ".join(f"{device} {product}".strip() for device, product in products.items())


def cases_of(winner: Winner, attempt: AttemptState) -> Iterator[CaseTime]:
    """Yield the cases of a winner: the timed cases first, then those without a time."""
    evaluation = timed_evaluation(attempt)
    assert evaluation is not None, "a winner is judged"
    sizes = case_sizes(evaluation)
    for latency in evaluation.latency:
        yield _case_time(winner, latency, sizes.get(latency.case, ""))
    for case in evaluation.not_timed:
        yield CaseTime(
            winner.attempt, case, "", sizes.get(case, ""), None, None, None, None, None, Bound.NONE,
            None, None, None, "", "not timed",
        )  # fmt: skip


def _case_time(winner: Winner, latency: Latency, sizes: str) -> CaseTime:
    shortest = shortest_us(latency)
    times_us = latency.baseline_ms * 1e3, latency.candidate_ms * 1e3
    short = [shortest if shortest is not None and time_us < shortest else None for time_us in times_us]
    suspect = latency.efficiency.suspect if latency.efficiency is not None else ""
    why = "both sides are too short" if latency.speedup is None else suspect and f"suspect: {suspect}"
    return CaseTime(
        attempt=winner.attempt,
        case=latency.case,
        device=latency.device,
        sizes=sizes,
        baseline_us=times_us[0],
        candidate_us=times_us[1],
        baseline_short_us=short[0],
        candidate_short_us=short[1],
        ratio=latency.speedup,
        bound=latency.bound,
        interval=None if latency.bound.sign else latency.ci,
        outcome=latency.outcome,
        roof=roof_share(latency),
        cache=latency.cache,
        why=why,
    )


def case_sizes(evaluation: Evaluation) -> dict[str, str]:
    """Return the sizes at which a GPU runs each case, as far as the evaluation knows them: `rows=8192 cols=4097`."""
    sized = [(sample.case, sample.sizes) for sample in evaluation.sampled]
    sized += [
        (estimate.case, estimate.sizes)
        for estimate in evaluation.estimate
        if estimate.case not in evaluation.not_sampled
    ]
    return {case: size_words(sizes) for case, sizes in sized}


def size_words(sizes: dict[str, int]) -> str:
    """Return `rows=8192 cols=4097`."""
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def estimates_of(winner: Winner, attempt: AttemptState) -> Iterator[EstimatedCase]:
    """Yield the bounds of each case of a winner, for the first target."""
    estimates = attempt.evaluation.estimate if attempt.evaluation is not None else ()
    for estimate in estimates:
        if estimate.target != estimates[0].target:
            continue
        bounds = dict.fromkeys((estimate.bound_low, estimate.bound_high))
        yield EstimatedCase(
            attempt=winner.attempt,
            case=estimate.case,
            sizes=size_words(estimate.sizes),
            target=estimate.target,
            low_us=estimate.low_us,
            high_us=estimate.high_us,
            limit=" to ".join(bounds),
        )


def unsolved_of(state: SessionState, bests: dict[str, AttemptState]) -> Iterator[Unsolved]:
    """Yield the tasks without a winner, with the attempt that came furthest."""
    for task in state.tasks():
        best = bests.get(task)
        if best is not None and best.verdict is Verdict.CORRECT:
            continue
        instances = [instance for instance in state.instances.values() if instance.task == task]
        yield Unsolved(
            task=task,
            closest=best.attempt if best is not None else "",
            why=_why_not(instances, best),
            ended=_ended(instances),
        )


def _why_not(instances: Sequence[InstanceState], best: AttemptState | None) -> str:
    if any(instance.solved for instance in instances):
        return "a person rejected every correct attempt"
    if best is None or best.evaluation is None:
        return "no attempt was judged yet"
    return failure_words(best.evaluation)


def _ended(instances: Sequence[InstanceState]) -> str:
    reasons = [instance.finished for instance in instances]
    if not reasons or None in reasons:
        return ""
    return "; ".join(dict.fromkeys(ending_words(reason) for reason in reasons if reason is not None))
