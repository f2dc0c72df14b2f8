"""Events of sessions that timed their kernels on a GPU, and of one without a GPU. No figure here was measured."""

from __future__ import annotations

import statistics

import msgspec

from harness import Evaluation, Latency, Outcome
from harness.wire.results.latency import Bound, Efficiency
from sessions import events as ev
from tests.support.sessions import story
from tests.support.sessions.journals import (
    FAST_SOURCE,
    RIGHT_SOURCE,
    WRONG_SOURCE,
    EventLog,
    correct,
    examined,
    softmax_log,
    stages,
    wrong,
)

PRODUCT = "MI300X"


def latency(
    case: str, baseline_us: float, candidate_us: float, *, half: float = 0.02, roof: float | None = None
) -> Latency:
    """Return one timed case; `half` is half of the width of its interval, relative to the speedup."""
    ratio = baseline_us / candidate_us
    low, high = ratio * (1 - half), ratio * (1 + half)
    outcome = Outcome.FASTER if low > 1 else Outcome.SLOWER if high < 1 else Outcome.NOT_RESOLVED
    used = Efficiency(
        PRODUCT, 1 << 20, 1 << 20, "fp32", 4.1e12, 2.3e12, io_utilisation=0.78, mfu=0.03, io_measured=roof
    )
    return Latency(
        "2", case, baseline_us / 1e3, candidate_us / 1e3, ratio, (low, high), "tape", outcome,
        against="triton", pairs=5, floor_ms=0.0036, efficiency=used if roof is not None else None,
    )  # fmt: skip


def softmax_cases(scale: float = 1.0) -> tuple[Latency, ...]:
    """Return six cases: four measured, one lower bound, one too short on both sides; `scale` makes them slower."""
    short = latency("narrow", 219.0, 18.0)
    return (
        latency("fp32", 251.0, 130.2 * scale, half=0.0125, roof=0.97 / scale),
        latency("ragged", 132.0, 71.4 * scale, half=0.024, roof=0.88 / scale),
        latency("outlier", 251.3, 139.6 * scale, half=0.02, roof=0.9 / scale),
        latency("fp16", 160.1, 97.6 * scale, half=0.02, roof=0.84 / scale),
        msgspec.structs.replace(short, floor_ms=0.0041, bound=Bound.AT_LEAST),
        msgspec.structs.replace(
            latency("one-row", 12.2, 12.1), speedup=None, ci=None, outcome=Outcome.TOO_SHORT
        ),
    )


def timed(latencies: tuple[Latency, ...], task: str = "starter/softmax") -> Evaluation:
    """Return the evaluation of a correct candidate with these times."""
    ratios = [latency.speedup for latency in latencies if latency.speedup is not None]
    return msgspec.structs.replace(
        correct(task=task), device="2", latency=latencies, stages=stages(6, failed=False),
        speedup=statistics.mean(ratios), speedup_geomean=statistics.geometric_mean(ratios),
    )  # fmt: skip


def measured() -> list[ev.AnyEvent]:
    """Return a finished session of three tasks on a GPU: much faster, as fast as the baseline, and not solved."""
    log = EventLog()
    log.open(devices=("2",), review="manual")
    tasks = ("starter/rms_norm", "starter/softmax", "starter/matmul")
    log.events[0] = story.changed(log.events[0], tasks=tasks, model="anthropic:claude-x")
    for task, instance in (*((task, 1) for task in tasks), ("starter/softmax", 2)):
        log.add(ev.InstanceStarted(task=task, instance=instance), after_s=0.1)
    log.attempt("softmax#1/1", WRONG_SOURCE, wrong(), price=0.21)
    log.attempt(
        "softmax#1/2",
        RIGHT_SOURCE,
        timed(softmax_cases(1.06)),
        origin=ev.Origin.REPAIR,
        base="softmax#1/1",
        strategy="Masked lanes load -inf.",
        price=0.22,
    )
    log.attempt(
        "softmax#1/3",
        FAST_SOURCE,
        timed(softmax_cases()),
        origin=ev.Origin.OPTIMIZE,
        base="softmax#1/2",
        strategy="Rows are read twice; one pass with the row in registers halves the time.",
        price=0.3,
    )
    log.attempt("softmax#2/1", RIGHT_SOURCE, timed(softmax_cases(1.5)), price=0.2)
    even = (
        latency("fp32", 98.2, 97.1, half=0.03, roof=0.93),
        latency("fp16", 61.5, 60.0, half=0.03, roof=0.9),
    )
    log.attempt("rms_norm#1/1", RIGHT_SOURCE, timed(even, "starter/rms_norm"), price=0.2)
    log.attempt("matmul#1/1", WRONG_SOURCE, wrong("starter/matmul"), price=0.18)
    log.exam("softmax#1/3", msgspec.structs.replace(examined(), task="starter/softmax"))
    log.add(ev.DecisionMade(attempt="softmax#1/3", accepted=True, why="reads once", by="ada"), after_s=9.0)
    log.add(ev.WaitingForPerson(attempt="rms_norm#1/1"), after_s=0.2)
    log.add(ev.InstanceFinished(task="starter/matmul", instance=1, reason="budget", best=None), after_s=0.2)
    return log.events


def estimated() -> list[ev.AnyEvent]:
    """Return a session on the CPU with one correct attempt, so that only estimates are known."""
    log = softmax_log()
    log.attempt("softmax#1/1", RIGHT_SOURCE, correct(waste=1.2))
    return log.events


def unsolved() -> list[ev.AnyEvent]:
    """Return a session with one attempt, which is wrong."""
    log = softmax_log(devices=("2",))
    log.attempt("softmax#1/1", WRONG_SOURCE, wrong())
    return log.events


def empty() -> list[ev.AnyEvent]:
    """Return a session without an attempt."""
    log = EventLog()
    log.open(devices=("2",))
    return log.events
