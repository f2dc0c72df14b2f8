"""Facts of a trial for people, as the guest reported them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.wire.messages.guest import LeftBehind
from harness.wire.results.evaluation import Basis, Fact
from harness.worker.oracle.caller import Run


def trial_facts(runs: Sequence[Run], left_behind: LeftBehind | None) -> tuple[Fact, ...]:
    """Return the launches and operators of each case, and what the candidate left behind."""
    facts: list[Fact] = []
    for run in runs:
        traffic = run.returned.traffic
        launches = f"{traffic.launches} ({', '.join(run.returned.kernels)})"
        facts.append(Fact(f"{run.case.name}: launches", launches, Basis.EVIDENCE))
        if run.returned.operators:
            counted = ", ".join(f"{operator.name} x{operator.count}" for operator in run.returned.operators)
            facts.append(Fact(f"{run.case.name}: operators", counted, Basis.EVIDENCE))
    if left_behind is not None:
        value = f"{left_behind.threads} threads, {left_behind.children} processes, {len(left_behind.patched)} patches"
        facts.append(Fact("left behind", value, Basis.EVIDENCE))
    return tuple(facts)
