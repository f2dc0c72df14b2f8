"""Facts of a trial for people: what replays prove, and what the guest reported where no replay proves it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.messages.guest import LeftBehind
from harness.wire.results.evaluation import Basis, Fact
from harness.worker.oracle.caller import Run

from .replay_findings import ReplayOutcome


def trial_facts(
    runs: Sequence[Run], outcomes: Sequence[ReplayOutcome], left: LeftBehind | None
) -> tuple[Fact, ...]:
    """Return the facts of a trial. Where a replay proves a call, its proof replaces the guest's report."""
    facts = list(replay_facts(outcomes))
    proven = {outcome.run.case.name for outcome in outcomes if outcome.replayed is not None}
    for run in runs:
        if run.case.name in proven:
            continue
        traffic = run.returned.traffic
        launches = f"{traffic.launches} ({', '.join(run.returned.kernels)})"
        facts.append(Fact(f"{run.case.name}: launches", launches, Basis.EVIDENCE))
        if run.returned.operators:
            counted = ", ".join(f"{operator.name} x{operator.count}" for operator in run.returned.operators)
            facts.append(Fact(f"{run.case.name}: operators", counted, Basis.EVIDENCE))
    if left is not None:
        value = f"{left.threads} threads, {left.children} processes, {len(left.patched)} patches"
        facts.append(Fact("left behind", value, Basis.EVIDENCE))
    return tuple(facts)


def replay_facts(outcomes: Sequence[ReplayOutcome]) -> tuple[Fact, ...]:
    """Return what replays prove, and which calls could not be replayed."""
    missing = tuple(
        Fact(f"{outcome.run.case.name}: replay", f"not replayed: {outcome.why_not}", Basis.EVIDENCE)
        for outcome in outcomes
        if outcome.replayed is None
    )
    replayed = [outcome for outcome in outcomes if outcome.replayed is not None]
    if len(replayed) <= 1:
        return (*(_fact(outcome) for outcome in replayed), *missing)
    own_values = sum(outcome.own_values for outcome in replayed)
    in_order = sum(outcome.in_order for outcome in replayed)
    value = (
        f"{len(replayed)} of {len(outcomes)} calls were repeated by their kernels alone with right answers, "
        f"{len(replayed) - own_values} of them on other values, {len(replayed) - in_order} with programs in reverse"
    )
    return (Fact("replay", value, Basis.PROOF), *missing)


def _fact(outcome: ReplayOutcome) -> Fact:
    report = outcome.replayed
    assert report is not None
    values = "own values (Python reads tensors)" if outcome.own_values else "other values"
    order = "programs in order (some wait)" if outcome.in_order else "programs in reverse"
    stored = sum(data.origins.get("stored", 0) for data in report.outputs)
    elements = sum(sum(data.origins.values()) for data in report.outputs)
    value = (
        f"{values}, {order}: {_launches(report.traffic.launches)} ({', '.join(report.kernels)}), "
        f"{stored} of {elements} output elements stored by kernels"
    )
    return Fact(f"{outcome.run.case.name}: replay", value, Basis.PROOF)


def _launches(number: int) -> str:
    return "1 launch" if number == 1 else f"{number} launches"
