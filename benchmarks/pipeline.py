"""Attempts an hour compared with the phase-by-phase way, and opening a long journal; for many GPUs see `benchmarks.scale`.

    .venv/bin/python -m benchmarks.pipeline rate|journal

Scheduler, journal, store, prompts and budgets are real. The model is scripted, and the judge is canned: both only take time,
drawn from the lognormal distributions `MODEL` and `JUDGE`.

`rate` compares 32 instances on 8 devices with the phase-by-phase way: all instances generate at the same time, then each device
judges its candidates one after the other, then the next round begins. Both have the same draws. The engine runs `PACE` times
faster than its figures say; the phase-by-phase way is arithmetic. Attempts an hour count until the first instance ends.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from engine.models import Pace, Piece, Reply, Request
from engine.plan.job import session_started
from engine.plan.plan import SessionPlan
from harness import STAGES, Evaluation, Stage
from harness.wire.device import Device
from sessions import Home, Recorder, fold
from sessions import events as ev
from sessions.journal.journal import open_journal, read_journal
from tests.support.engine.engines import ScriptedJudge, answer_of, plan, run, shared
from tests.support.judge.evaluations import correct

PACE = 40.0
INSTANCES, DEVICES, ITERATIONS = 32, 8, 8
EVENTS = 100_000


class Lognormal(NamedTuple):
    """A distribution of seconds."""

    median_s: float
    sigma: float

    def draw(self, key: str) -> float:
        """Return the same seconds for the same key."""
        return random.Random(key).lognormvariate(math.log(self.median_s), self.sigma)


MODEL = Lognormal(60.0, 0.8)
"""Replies with reasoning: one of six takes more than 133 s, one of a hundred more than 386 s."""
STEADY_MODEL = Lognormal(60.0, 0.4)
"""Replies of nearly the same length: one of six takes more than 90 s."""
JUDGE = Lognormal(13.0, 0.4)
"""Median of `benchmarks.throughput --simulate 8`."""


class Model:
    """Answers after a drawn time."""

    model = "scripted:slow"

    def __init__(self, seconds: Lognormal) -> None:
        self._seconds = seconds

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        key = request.key
        text = answer_of("correct 1.0", f"{key.instance}.{key.attempt}")
        await asyncio.sleep(self._seconds.draw(f"model {key.instance}.{key.attempt}") / PACE)
        on_piece(Piece("text", text))
        return Reply(text=text, usage=ev.Usage(5_000, 2_000))

    async def close(self) -> None:
        """See `Client`."""


class Judge(ScriptedJudge):
    """Judges one candidate at a time on each device, in a drawn time."""

    def __init__(self, devices: int, seconds: Lognormal) -> None:
        super().__init__()
        self.devices: Sequence[Device] = tuple(Device(name=str(n), kind="cpu") for n in range(devices))
        self.judged_at: list[tuple[int, float]] = []
        """Instance and time of each verdict."""
        self._free = asyncio.Semaphore(devices)
        self._seconds = seconds

    async def evaluate(self, source: str, *args: object, exam: bool = False, **more: object) -> Evaluation:  # type: ignore[override]
        """See `Judge`."""
        mark = source.splitlines()[1].removeprefix("# ")
        async with self._free:
            evaluation = await super().evaluate(source, *args, exam=exam, **more)  # type: ignore[arg-type]
            await asyncio.sleep(self._seconds.draw(f"judge {mark}") / PACE)
        self.evaluated.clear()
        if not exam:
            self.judged_at.append((int(mark.partition(".")[0]), time.perf_counter()))
        return evaluation


async def play(session_plan: SessionPlan, model: Model, judge: Judge) -> float:
    """Run a session in a temporary home; return the wall seconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder.begin(Home(Path(folder)), session_started(session_plan)) as recorder,
    ):
        recorder.record(ev.EngineStarted(host="here", pid=1))
        began = time.perf_counter()
        await run(shared(recorder, session_plan, model, judge))
        seconds = time.perf_counter() - began
        await recorder.flush()
    return seconds


def plan_of(instances: int, iterations: int) -> SessionPlan:
    """Return the plan of a session without limits of the provider."""
    pace = {"scripted": Pace(concurrency=instances)}
    return plan(instances=instances, iterations=iterations, providers=pace)


def phases_s(model: Lognormal) -> float:
    """Return the mean seconds of a round of the phase-by-phase way."""
    total = 0.0
    for attempt in range(1, ITERATIONS + 1):
        total += max(model.draw(f"model {instance}.{attempt}") for instance in range(1, INSTANCES + 1))
        total += max(
            sum(
                JUDGE.draw(f"judge {instance}.{attempt}")
                for instance in range(1 + device, INSTANCES + 1, DEVICES)
            )
            for device in range(DEVICES)
        )
    return total / ITERATIONS


async def rate() -> None:
    """Print attempts an hour of both ways."""
    for name, model in (("long tails", MODEL), ("steady", STEADY_MODEL)):
        judge = Judge(DEVICES, JUDGE)
        began = time.perf_counter()
        wall_s = await play(plan_of(INSTANCES, ITERATIONS), Model(model), judge) * PACE
        made = [0] * (INSTANCES + 1)
        count = until = 0.0
        for instance, at in judge.judged_at:
            made[instance] += 1
            count, until = count + 1, at
            if made[instance] == ITERATIONS:
                break
        engine = count / ((until - began) * PACE) * 3600
        phases = INSTANCES / phases_s(model) * 3600
        line = (
            f"{name}: {engine:.0f} attempts an hour, phase by phase {phases:.0f}: {engine / phases:.1f} times; "
            f"whole session {wall_s:.0f} s, phase by phase {ITERATIONS * phases_s(model):.0f} s"
        )
        print(line)  # noqa: T201


async def journal() -> None:
    """Print how long it takes to read and fold a journal of 100,000 events."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.jsonl"
        writer = open_journal(path).writer
        for event in itertools.islice(invented(), EVENTS):
            writer.write(event)
        began = time.perf_counter()
        events = read_journal(path).events
        read_s = time.perf_counter() - began
        fold(events)
        fold_s = time.perf_counter() - began - read_s
        megabytes = writer.size / 1e6
        print(f"{len(events):,} events, {megabytes:.0f} MB: read {read_s:.2f} s, fold {fold_s:.2f} s")  # noqa: T201


def invented() -> itertools.chain[ev.Event]:
    """Yield events without end: attempts of 80 instances, each with a streamed reply and a verdict."""
    return itertools.chain.from_iterable(map(events_of_attempt, itertools.count()))


def events_of_attempt(number: int) -> list[ev.Event]:
    """Return the events of one attempt."""
    attempt = f"softmax#{number % 80 + 1}/{number // 80 + 1}"
    call = f"{attempt}/generator/1"
    prompt = (ev.Message("system", "knowledge " * 1400), ev.Message("user", "task " * 1600))
    return [
        ev.AttemptStarted(attempt=attempt, origin=ev.Origin.FRESH),
        ev.CallStarted(call=call, attempt=attempt, role=ev.Role.GENERATOR, model="m", messages=prompt),
        *(ev.ReplyPiece(call=call, kind="text", text="word " * 20) for _ in range(60)),
        ev.CallFinished(call=call, text="word " * 1200, usage=ev.Usage(5_000, 2_000)),
        ev.CandidateProposed(attempt=attempt, source="x = 1\n" * 700),
        *(ev.StageFinished(attempt=attempt, stage=Stage(stage, True, 0.1)) for stage in STAGES),
        ev.AttemptJudged(attempt=attempt, evaluation=correct(speedup=1.0)),
    ]


MEASUREMENTS = {"rate": rate, "journal": journal}


def main() -> int:
    """Run the named measurements."""
    parser = argparse.ArgumentParser(description="Attempts an hour, and opening a long journal.")
    parser.add_argument("what", nargs="+", choices=MEASUREMENTS)
    for what in parser.parse_args().what:
        asyncio.run(MEASUREMENTS[what]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
