"""Events of a fleet for tests of Fleet: several tasks, four instances each, GPUs. No figure was measured."""

from __future__ import annotations

import msgspec

from harness import Evaluation
from harness.wire.results.latency import Bound, Outcome
from sessions import events as ev
from tests.support.sessions import story
from tests.support.sessions.journals import EventLog, call_error, correct, latencies, wrong

TASKS = ("softmax", "layer_norm", "rms_norm", "swiglu", "rope")


def measured(factor: float, *, spread: float = 0.02) -> Evaluation:
    """Return a correct evaluation with one timed case of this speedup."""
    interval = (factor * (1 - spread), factor * (1 + spread))
    timed = msgspec.structs.replace(
        latencies()[1], speedup=factor, ci=interval, outcome=Outcome.FASTER, bound=Bound.NONE,
        against="triton",
    )  # fmt: skip
    return correct(speed=(timed,))


def opened(
    *, tasks: tuple[str, ...] = TASKS, instances: int = 4, gpus: int = 8, **options: object
) -> EventLog:
    """Return the first events of a session with these tasks, instances and GPUs."""
    log = EventLog()
    log.open(devices=("cpu", *map(str, range(gpus))), review="manual", iterations=10)
    started = story.changed(
        log.events[0], tasks=tuple(f"starter/{task}" for task in tasks), instances=instances,
        model="claude-x", title="paged-attn tuning", budget_usd=50.0,
    )  # fmt: skip
    log.events[0] = story.changed(started, **options)
    for task in tasks:
        for number in range(1, instances + 1):
            log.add(ev.InstanceStarted(task=f"starter/{task}", instance=number))
    return log


def judge(
    log: EventLog,
    attempt: str,
    evaluation: Evaluation,
    *,
    origin: ev.Origin = ev.Origin.FRESH,
    usd: float = 0.04,
) -> None:
    """Append an attempt with one call and its verdict."""
    call = f"{attempt}/generator/1"
    log.add(ev.AttemptStarted(attempt=attempt, origin=origin), after_s=1.0)
    log.add(ev.CallStarted(call=call, attempt=attempt, role=ev.Role.GENERATOR, model="claude-x", messages=()))
    usage = ev.Usage(input_tokens=1840, output_tokens=612)
    log.add(ev.CallFinished(call=call, text="code", usage=usage, cost_usd=usd, seconds=4.0), after_s=4.0)
    log.add(ev.CandidateProposed(attempt=attempt, source="x = 1", strategy="one pass"))
    log.add(ev.AttemptJudged(attempt=attempt, evaluation=evaluation, device_s=2.0), after_s=2.0)


def begin(log: EventLog, attempt: str, role: ev.Role = ev.Role.GENERATOR) -> None:
    """Append an attempt whose first reply arrives."""
    call = f"{attempt}/{role.value}/1"
    log.add(ev.AttemptStarted(attempt=attempt, origin=ev.Origin.OPTIMIZE), after_s=0.5)
    log.add(ev.CallStarted(call=call, attempt=attempt, role=role, model="claude-x", messages=()))
    log.add(ev.ReplyPiece(call=call, kind="reasoning", text="so"))


def stage(log: EventLog, attempt: str, name: str, device: str) -> None:
    """Append an attempt that the judge has in a stage."""
    log.add(ev.AttemptStarted(attempt=attempt, origin=ev.Origin.OPTIMIZE), after_s=0.5)
    log.add(ev.CandidateProposed(attempt=attempt, source="x = 1"))
    log.add(ev.StageStarted(attempt=attempt, stage=name, device=device))


def busy(*, gpus: int = 8) -> EventLog:
    """Return a fleet with each state: a review, a stuck instance, attempts in the judge, GPUs with trouble."""
    log = opened(gpus=gpus)
    fast = measured if gpus else (lambda factor, **_: correct(waste=3 - factor))
    for number, factor in ((1, 1.31), (2, 1.52), (3, 1.73)):
        judge(log, f"softmax#{number}/1", fast(factor))
    begin(log, "softmax#1/2")
    stage(log, "softmax#2/2", "performance" if gpus else "execution", "0" if gpus else "cpu")
    judge(log, "softmax#3/2", fast(1.84), origin=ev.Origin.OPTIMIZE)
    log.add(ev.WaitingForPerson(attempt="softmax#3/2"))
    judge(log, "softmax#4/1", wrong())
    begin(log, "softmax#4/2", ev.Role.REFLECTOR)
    for number in (1, 2, 3):
        judge(log, f"layer_norm#1/{number}", call_error())
    begin(log, "layer_norm#1/4")
    stage(log, "layer_norm#3/1", "execution", "1" if gpus else "cpu")
    for number in (1, 2, 3, 4):
        judge(log, f"rms_norm#{number}/1", fast(1.02, spread=0.03))
        end = ev.InstanceFinished(task="starter/rms_norm", instance=number, reason="iterations")
        log.add(end)
    judge(log, "swiglu#1/1", wrong())
    end = ev.InstanceFinished(task="starter/swiglu", instance=1, reason="model_failed", message="key refused")
    log.add(end)
    for number in range(gpus):
        names = {0: ("softmax#2/2",), 1: ("layer_norm#3/1",)}.get(number, ())
        log.device(str(number), *names, share=0.9 if names else 0.0)
    if gpus > 6:
        log.device("7", "rope#1/1", "rope#2/1", share=0.5)
        log.add(ev.DeviceQuarantined(device="7", why="the probe hung"))
        holder = "a process of kim (pid 4242 on node17) runs on it since 12:00:00"
        log.add(ev.DeviceAwaited(device="6", holders=(holder,), users=(ev.DeviceUser("kim", 4242),)))
        log.add(ev.DeviceLent(device="5", by="ada"))
    return log
