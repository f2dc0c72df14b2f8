"""Recorded events of a session in the middle of its run: by default 20 tasks, 80 instances and 8 GPUs.

The session has instances in every state, every verdict, and everything that needs a person. Names, times and figures
are fixed, so that pictures of screens can be compared. No figure here was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from benchmarks.generated_session.chains import MODEL, SESSION, Chain, Plan
from benchmarks.generated_session.verdicts import correct, refused
from harness import Verdict
from sessions import events as ev
from sessions.names import short_task
from sessions.settings import RunSettings

STARTED_WALL = 1_795_258_800.0
"""2026-11-21 11:00:00 UTC."""
SAMPLE_EVERY_S = 5.0
SPENT = 0.91
"""Share of the budget that is spent."""
HOLDER = ev.DeviceUser("kim", 3117)

Entry = tuple[float, ev.AnyEvent]
"""Seconds from the session's start, and an event."""


def session(
    tasks: int = 20, instances: int = 4, devices: int = 8, attempts: int = 10, *, pieces: int = 6
) -> list[ev.AnyEvent]:
    """Return the events of a running session with `tasks` times `instances` instances, numbered and in time order.

    `devices` is the number of GPUs; with 0 the interpreter on `cpu` judges, and nothing is timed. At least 4 GPUs
    have a throttled, an awaited and a quarantined GPU. `attempts` is the limit of each instance, which most instances
    have not reached. `pieces` is the number of pieces of a streamed reply's reasoning and of its text.
    """
    plan = Plan(tasks=tasks, instances=instances, gpus=devices, attempts=attempts, pieces=pieces)
    chains = [Chain(plan, place, number) for place in range(tasks) for number in range(1, instances + 1)]
    entries: list[Entry] = [(0.2, ev.EngineStarted(host="node17", pid=4242))]
    entries += _baselines(plan)
    for chain in chains:
        entries += chain.entries
    entries += _people(chains)
    entries += _spread(plan, chains)
    entries += _devices(plan, chains)
    entries.sort(key=lambda entry: entry[0])
    entries.insert(0, (0.0, _first(plan, entries)))
    return [
        msgspec.structs.replace(event, seq=number, wall=STARTED_WALL + seconds, mono=seconds)
        for number, (seconds, event) in enumerate(entries, start=1)
    ]


def _first(plan: Plan, entries: Sequence[Entry]) -> ev.SessionStarted:
    spent = math.fsum(event.cost_usd or 0.0 for _, event in entries if isinstance(event, ev.CallFinished))
    return ev.SessionStarted(
        session=SESSION,
        settings=RunSettings(
            method="geak",
            model=MODEL,
            tasks=plan.tasks,
            instances=plan.instances,
            iterations=plan.attempts,
            seed=7,
            devices=plan.devices,
            targets=("gfx942",),
            review="manual",
            budget_usd=round(spent / SPENT, 2),
        ),
        versions={"rocm": "7.0", "torch": "2.13.0", "triton": "3.7.1"},
    )


def _baselines(plan: Plan) -> Iterator[Entry]:
    for place, task in enumerate(plan.tasks):
        if plan.measures and not plan.is_timed(place):
            evaluation = refused(task, plan.devices[0], Verdict.COMPILE_ERROR)
            why = evaluation.error.message if evaluation.error else ""
            words = (
                f"the baseline of {short_task(task)} was not timed, so prompts show only its source: {why}"
            )
            yield 3.0 + place * 0.01, ev.Notice(level="warning", message=words)
        else:
            evaluation = correct(task, plan.devices[0], 1.0 if plan.measures else None)
        yield 3.0 + place * 0.01, ev.BaselineMeasured(task=task, evaluation=evaluation, device_s=14.0)


def _people(chains: Sequence[Chain]) -> Iterator[Entry]:
    """Commands of people, and notices."""
    for chain in chains:
        if chain.best is None:
            continue
        if chain.state == "accepted":
            yield (
                chain.now,
                ev.DecisionMade(attempt=chain.best, accepted=True, why="clean and fast", by="kim"),
            )
        elif chain.state == "optimize":
            why = "the guard on line 12 refuses columns > 8192"
            judged = next(seconds for seconds, event in chain.entries if _judges(event, chain.best))
            yield judged + 20.0, ev.DecisionMade(attempt=chain.best, accepted=False, why=why, by="kim")
    first = chains[0]
    text = "Keep the row in registers; 8192 columns fit with eight waves."
    yield first.now - 400.0, ev.HintGiven(instance=first.key, text=text, by="kim")
    cold = "the compile cache is empty: the first attempts take longer"
    yield 5.0, ev.Notice(level="info", message=cold)


def _judges(event: ev.AnyEvent, attempt: str) -> bool:
    return isinstance(event, ev.AttemptJudged) and event.attempt == attempt


def _spread(plan: Plan, chains: Sequence[Chain]) -> Iterator[Entry]:
    """Times of one attempt on every usable GPU: of the first that waits for a person, else of the first correct one."""
    ready = [chain for chain in chains if chain.best is not None and chain.steps[-1].speedup is not None]
    chain = next((chain for chain in ready if chain.state == "review"), ready[0] if ready else None)
    if chain is None or len(plan.usable) < 2:
        return
    attempt, speedup = chain.name(len(chain.steps)), chain.steps[-1].speedup
    asked = chain.now - 1.0 + 0.1
    yield asked, ev.MeasureAsked(attempt=attempt, devices=plan.usable, by="kim")
    for place, device in enumerate(plan.usable):
        evaluation = correct(
            chain.task,
            device,
            round((speedup or 1.0) * (1 - 0.002 * place), 3),
            bounded=chain.is_bounded,
            throttled=device == plan.throttled,
            version=len(chain.steps) - 1,
        )
        measured = ev.WinnerMeasured(attempt=attempt, device=device, evaluation=evaluation, device_s=23.0)
        yield asked + 2.0 + place, measured


def _devices(plan: Plan, chains: Sequence[Chain]) -> Iterator[Entry]:
    """Samples of each device, each minute and in the last two minutes more often, and the devices in trouble."""
    lost_s = plan.run_s - 2400.0
    if plan.quarantined:
        why = "no reply within 30 s after a memory access fault; a reset did not help"
        yield lost_s, ev.DeviceQuarantined(device=plan.quarantined, why=why)
        yield (
            plan.run_s - 250.0,
            ev.DeviceAwaited(
                device=plan.awaited, holders=(f"{HOLDER.user} (pid {HOLDER.pid})",), users=(HOLDER,)
            ),
        )
    times = [60.0 * minute for minute in range(1, int(plan.run_s // 60) - 2)]
    times += [plan.run_s - SAMPLE_EVERY_S * back for back in range(24, -1, -1)]
    busy = {device: _judged_on(chains, device) for device in plan.devices}
    for turn, seconds in enumerate(times):
        for place, device in enumerate(plan.devices):
            if device != plan.quarantined or seconds < lost_s:
                now_busy = busy[device] if seconds > plan.run_s - 16.0 else ()
                yield (
                    seconds + 0.01 * place,
                    _sample(plan, device, (turn * 7 + place * 5) % 11 / 10, now_busy),
                )


def _judged_on(chains: Sequence[Chain], device: str) -> tuple[str, ...]:
    last = (chain.entries[-1][1] for chain in chains)
    return tuple(
        event.attempt for event in last if isinstance(event, ev.StageStarted) and event.device == device
    )


def _sample(plan: Plan, device: str, share: float, busy: tuple[str, ...]) -> ev.DeviceSampled:
    if device == "cpu":
        return ev.DeviceSampled(
            device=device, description="Triton's interpreter, 2 cores", busy_with=busy, utilisation=share
        )
    foreign, slow = device == plan.awaited, device == plan.throttled
    return ev.DeviceSampled(
        device=device,
        description="MI300X gfx942",
        busy_with=busy,
        utilisation=1.0 if foreign or busy else share,
        memory_used_bytes=141_000_000_000 if foreign else (3 << 30) + int(share * (9 << 30)),
        memory_total_bytes=192 << 30,
        temperature_c=round(46.0 + 27.0 * share, 1),
        power_w=750.0 if slow else round(150.0 + 520.0 * share),
        clock_mhz=1610.0 if slow else 2100.0,
    )
