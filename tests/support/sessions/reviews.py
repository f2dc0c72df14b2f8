"""Events of sessions with attempts that a person decides on. No figure here was measured."""

from __future__ import annotations

import msgspec

from harness import Evaluation, Latency, Margin, Outcome, Stage
from harness.wire.results.evaluation import Finding
from harness.wire.results.latency import Bound, Efficiency
from sessions import events as ev
from tests.support.sessions.journals import (
    FAST_SOURCE,
    RIGHT_SOURCE,
    WRONG_SOURCE,
    EventLog,
    correct,
    resources,
    wrong,
)


def timed(ratio: float, *, device: str = "2") -> tuple[Latency, ...]:
    """Return four cases on one GPU: two of this speedup, a lower bound, and a case too short for a ratio."""
    used = Efficiency(
        "MI300X", 134_217_728, 67_108_864, "fp32", 3.9e12, 2.0e12, 0.73, 0.02, io_measured=0.91,
        mfu_measured=0.03,
    )  # fmt: skip

    def case(name: str, speedup: float | None, outcome: Outcome, bound: Bound = Bound.NONE) -> Latency:
        ci = (speedup - 0.03, speedup + 0.03) if speedup is not None else None
        candidate = 0.1302
        return Latency(
            device, name, candidate * (speedup or 1.0), candidate, speedup, ci, "tape", outcome,
            against="triton", efficiency=used, bound=bound,
        )  # fmt: skip

    return (
        case("fp32", ratio, Outcome.FASTER if ratio > 1.03 else Outcome.NOT_RESOLVED),
        case("ragged", ratio * 0.9, Outcome.FASTER if ratio * 0.9 > 1.03 else Outcome.SLOWER),
        case("narrow", 12.0, Outcome.FASTER, Bound.AT_LEAST),
        case("one-row", None, Outcome.TOO_SHORT),
    )


def candidate(ratio: float, *, findings: tuple[Finding, ...] = (), vgprs: int = 96) -> Evaluation:
    """Return a correct evaluation with this speedup."""
    latency = timed(ratio)
    judged = msgspec.structs.replace(correct(speed=latency[:3]), latency=latency)
    stages = tuple(
        Stage(
            stage.name, stage.ok, stage.seconds, "27 of 27 cases match the oracle, 5 of them hidden", (27, 27)
        )
        if stage.name == "execution"
        else stage
        for stage in judged.stages
    )
    return msgspec.structs.replace(
        judged, stages=stages, device="2", findings=findings, resources=resources(vgprs=vgprs, waves=5),
        margins=(*judged.margins, Margin("fp32-outlier", "y", "elementwise", 0.795, (0, 31))),
    )  # fmt: skip


def waiting() -> list[ev.AnyEvent]:
    """Return a manual session on two GPUs: softmax#1/3 waits for 4 min 10 s, vector_add#1/1 for 31 s, two are decided."""
    log = EventLog()
    log.open(review="manual", devices=("2", "3"))
    for task, instance in (("starter/softmax", 1), ("starter/softmax", 2), ("starter/vector_add", 1)):
        log.add(ev.InstanceStarted(task=task, instance=instance), after_s=0.1)
    log.add(ev.BaselineMeasured(task="starter/softmax", evaluation=candidate(1.0, vgprs=56)), after_s=1.0)
    log.attempt("softmax#1/1", RIGHT_SOURCE, candidate(1.71))
    log.add(ev.WaitingForPerson(attempt="softmax#1/1"))
    log.add(ev.DecisionMade(attempt="softmax#1/1", accepted=True, why="clean", by="ada"), after_s=20.0)
    log.attempt("softmax#1/2", WRONG_SOURCE, wrong(), origin=ev.Origin.OPTIMIZE, base="softmax#1/1")
    log.attempt("softmax#2/1", RIGHT_SOURCE, candidate(1.2))
    log.add(ev.WaitingForPerson(attempt="softmax#2/1"))
    log.add(
        ev.DecisionMade(attempt="softmax#2/1", accepted=False, why="ignores the stride", by="kim"),
        after_s=9.0,
    )
    refuses = Finding("refuses_sizes", "refuses columns > 8192; no case goes there", line=12)
    log.attempt(
        "softmax#1/3",
        FAST_SOURCE,
        candidate(1.81, findings=(refuses,)),
        origin=ev.Origin.OPTIMIZE,
        base="softmax#1/1",
        strategy="rows are read twice; one pass, row in registers",
    )
    log.add(ev.WaitingForPerson(attempt="softmax#1/3"))
    log.wall += 209.0
    log.attempt(
        "vector_add#1/1", RIGHT_SOURCE, msgspec.structs.replace(candidate(1.02), task="starter/vector_add")
    )
    log.add(ev.WaitingForPerson(attempt="vector_add#1/1"))
    log.add(
        ev.AttemptStarted(attempt="softmax#2/2", origin=ev.Origin.REPAIR, base="softmax#2/1"), after_s=31.0
    )
    return log.events
