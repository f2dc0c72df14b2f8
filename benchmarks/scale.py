"""One session on many simulated GPUs: `python -m benchmarks.scale [--minutes M] [--hurry N] GPUS ...`, or `--wire`.

Scheduler, prompts, budgets, journal, store and a following viewer are real. Each GPU has ten instances. The model streams two
pieces a second and the judge holds a GPU: both only take time, drawn from `MODEL` and `JUDGE`. No harness runs. What it costs
to read a streamed piece from a server is measured by `--wire`, with the real clients and a server on loopback.

With `--hurry`, model and judge answer so many times faster. Instances then have many attempts, and what grows is the memory of
earlier attempts.

Other work on the machine makes wall times longer. So the delay of the event loop is also computed from the CPU time of its
turns: how late a timer is that ends at a random moment, if the loop has a core for itself.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import cProfile
import itertools
import os
import random
import resource
import selectors
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from benchmarks.generated_session.verdicts import correct, kernel, refused
from benchmarks.pipeline import Lognormal
from engine.models import CallKey, Pace, Piece, Reply, Request
from engine.models.opening import open_client
from engine.plan.job import session_started
from harness import STAGES, Evaluation, Stage, StageEvent, Verdict
from harness.wire.device import Device
from sessions import Home, Recorder
from sessions import events as ev
from sessions.journal.journal import JournalTail
from sessions.state.folding import apply
from sessions.state.state import SessionState
from tests.support.engine import model_server
from tests.support.engine.engines import ScriptedJudge, plan, run, shared

INSTANCES_A_GPU = 10
MODEL = Lognormal(60.0, 0.8)
JUDGE = Lognormal(8.0, 0.4)
"""7 attempts a minute and GPU, as measured on four H100s."""
TICK_S = 0.5
PIECE = "a dozen words or so of reasoning, as they come in half a second. " * 2
TOKENS_A_PIECE = 30
TASKS = ("softmax", "layer_norm", "cross_entropy", "matmul", "flip", "rms_norm_residual", "vector_add")
FOLLOW, SERVE = "--follow", "--serve"
WIRE_CALLS, WIRE_PIECES_A_S, WIRE_S = 60, 20, 10
FRAME_S = 0.1


class Model:
    """Streams reasoning for a drawn time, then answers with a kernel."""

    model = "scripted:slow"

    def __init__(self, hurry: float) -> None:
        self._tick_s = TICK_S / hurry

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`."""
        key = request.key
        call = f"model {key.task} {key.instance}.{key.attempt}.{key.n}.{key.role}"
        seconds = MODEL.draw(call)
        if key.attempt == 1:
            # As in the middle of a run: a part of the first reply is over.
            seconds *= random.Random(call).random()
        pieces = int(seconds / TICK_S)
        for _ in range(pieces):
            await asyncio.sleep(self._tick_s)
            on_piece(Piece("reasoning", PIECE))
        if key.role is ev.Role.REFLECTOR:
            text = "The mask of the last block is wrong."
        else:
            source = kernel(key.task, key.attempt, variant=key.instance)
            text = f"One pass.\n\n```python\n# {key.instance}.{key.attempt}\n{source}```\n"
        on_piece(Piece("text", text))
        return Reply(text=text, reasoning=PIECE * pieces, usage=ev.Usage(8_000, TOKENS_A_PIECE * pieces))

    async def close(self) -> None:
        """See `Client`."""


class Judge(ScriptedJudge):
    """Judges one candidate at a time on each GPU, in a drawn time; two of five candidates fail."""

    def __init__(self, gpus: int, hurry: float) -> None:
        super().__init__()
        self._hurry = hurry
        self.devices: Sequence[Device] = tuple(
            Device(name=str(number), kind="cuda", target="gfx942") for number in range(gpus)
        )
        self._free = [device.name for device in reversed(self.devices)]
        self._slots = asyncio.Semaphore(gpus)

    async def evaluate(
        self, source: str, task: Any, *, on_stage: Callable[[Any], None], **_: object
    ) -> Evaluation:
        """See `Judge`."""
        async with self._slots:
            device = self._free.pop()
            try:
                return await self._judge_on(device, source, task.id, on_stage)
            finally:
                self._free.append(device)

    async def _judge_on(
        self, device: str, source: str, task: str, on_stage: Callable[[Any], None]
    ) -> Evaluation:
        seconds = JUDGE.draw(f"judge {source}") / len(STAGES) / self._hurry
        for stage in STAGES:
            on_stage(StageEvent(stage, device))
            await asyncio.sleep(seconds)
            on_stage(StageEvent(stage, device, Stage(stage, True, seconds)))
        chance = Lognormal(1.0, 0.3).draw(source)
        if chance < 0.93 and source.startswith("# "):
            return refused(task, device, Verdict.WRONG)
        return correct(task, device, chance)


class Turns(selectors.DefaultSelector):
    """A selector that records the CPU seconds of each turn of the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.cpu_s = array("d")  # not a list: its floats would be most of what grows
        self._since = time.thread_time()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """See `selectors`."""
        self.cpu_s.append(time.thread_time() - self._since)
        ready = super().select(timeout)
        self._since = time.thread_time()
        return ready


def late_s(turns_s: Sequence[float], wall_s: float, share: float) -> float:
    """Return the delay that this share of timers does not pass, if they end at random moments of `wall_s`.

    A timer that ends in a turn waits for the rest of the turn.
    """
    low, high = 0.0, max(turns_s, default=0.0)
    for _ in range(40):
        middle = (low + high) / 2
        later = sum(turn - middle for turn in turns_s if turn > middle) / wall_s
        low, high = (middle, high) if later > 1 - share else (low, middle)
    return high


class Waits(NamedTuple):
    """Seconds that instances waited: for the disk to have an event, and for the commit of an attempt."""

    durable: list[float]
    commit: list[float]

    def watch(self, recorder: Recorder) -> None:
        """Time both methods of a recorder."""
        for name, waited in (("record_durable", self.durable), ("commit_attempt", self.commit)):
            setattr(recorder, name, timed(getattr(recorder, name), waited))


def timed(method: Callable[..., Any], waited: list[float]) -> Callable[..., Any]:
    """Return the method, which notes its seconds."""

    async def call(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return await method(*arguments)
        finally:
            waited.append(time.perf_counter() - began)

    return call


async def beat(late: array[float]) -> None:
    """Note how late a timer of 10 ms is."""
    while True:
        due = time.perf_counter() + 0.01
        await asyncio.sleep(0.01)
        late.append(time.perf_counter() - due)


class Mark(NamedTuple):
    """Counters at one moment."""

    wall_s: float
    loop_s: float
    all_s: float
    turns: int
    beats: int
    attempts: int
    events: int
    bytes: int
    rss: int


async def play(
    gpus: int, minutes: float, hurry: float, turns: Turns, profile: cProfile.Profile | None
) -> Table:
    """Run a session for so long and return the table of its figures, for each part of the run."""
    instances = INSTANCES_A_GPU * gpus
    tasks = TASKS[: max(1, min(len(TASKS), instances))]
    session_plan = plan(
        tasks=tuple(f"starter/{task}" for task in tasks),
        instances=max(1, instances // len(tasks)),
        iterations=1000,
        devices=tuple(map(str, range(gpus))),
        providers={"scripted": Pace(concurrency=instances)},
    )
    late = array("d")
    waits = Waits([], [])
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder.begin(Home(Path(folder)), session_started(session_plan)) as recorder,
        viewer(recorder.files.journal) as following,
    ):
        waits.watch(recorder)
        recorder.record(ev.EngineStarted(host="here", pid=os.getpid()))

        def mark() -> Mark:
            attempts = sum(attempt.verdict is not None for attempt in recorder.state.attempts())
            counts = len(turns.cpu_s), len(late), attempts, recorder._writer.last_seq, recorder._writer.size
            rss = psutil.Process().memory_info().rss
            return Mark(time.perf_counter(), time.thread_time(), time.process_time(), *counts, rss)

        marks = [mark()]
        if profile is not None:
            profile.enable()
        beating = asyncio.create_task(beat(late))
        running = asyncio.create_task(run(shared(recorder, session_plan, Model(hurry), Judge(gpus, hurry))))
        for seconds in (10.0, *[(minutes * 60 - 10) / 4] * 4):
            await asyncio.wait(
                {running, asyncio.create_task(asyncio.sleep(seconds))}, return_when="FIRST_COMPLETED"
            )
            marks.append(mark())
            if running.done():
                running.result()
        if profile is not None:
            profile.disable()
        for task in (running, beating):
            task.cancel()
        await asyncio.wait({running, beating})
    return report(marks, turns.cpu_s, late, waits, following())


def report(
    marks: Sequence[Mark], turns_s: Sequence[float], late: Sequence[float], waits: Waits, viewed: Viewed
) -> Table:
    """Return a row for each part between two marks."""
    table = Table(
        *(
            "seconds",
            "attempts",
            "a second",
            "events a second",
            "MB a second",
            "loop's CPU",
            "all threads' CPU",
        ),
        *("late p99; worst, CPU ms", "late p99; worst, wall ms", "MiB"),
    )
    for before, now in itertools.pairwise(marks):
        wall_s = now.wall_s - before.wall_s
        turns, beats = turns_s[before.turns : now.turns], sorted(late[before.beats : now.beats]) or [0.0]
        table.add_row(
            f"{before.wall_s - marks[0].wall_s:.0f} to {now.wall_s - marks[0].wall_s:.0f}",
            str(now.attempts),
            f"{(now.attempts - before.attempts) / wall_s:.1f}",
            f"{(now.events - before.events) / wall_s:,.0f}",
            f"{(now.bytes - before.bytes) / wall_s / 1e6:.2f}",
            f"{(now.loop_s - before.loop_s) / wall_s:.0%}",
            f"{(now.all_s - before.all_s) / wall_s:.0%}",
            f"{late_s(turns, wall_s, 0.99) * 1e3:.1f}; {max(turns) * 1e3:.0f}",
            f"{beats[int(len(beats) * 0.99)] * 1e3:.0f}; {beats[-1] * 1e3:.0f}",
            f"{now.rss / 2**20:.0f}",
        )
    for name, waited in zip(waits._fields, waits, strict=True):
        ordered = sorted(waited) or [0.0]
        shown = (
            f"{ordered[len(ordered) // 2]:.3f}; {ordered[int(len(ordered) * 0.99)]:.3f}; {ordered[-1]:.2f} s"
        )
        table.add_row(f"wait: {name}", str(len(waited)), "median; p99; worst", shown)
    share = viewed.cpu_s / (marks[-1].wall_s - marks[0].wall_s)
    table.add_row("viewer", "", "", "", "", f"{share:.0%}", "", "", "", f"{viewed.mib:.0f}")
    return table


class Viewed(NamedTuple):
    """CPU seconds and most memory of a viewer."""

    cpu_s: float
    mib: float


@contextlib.contextmanager
def viewer(journal: Path) -> Iterator[Callable[[], Viewed]]:
    """Let a process follow the journal; yields a function that returns what it took, after the block."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.scale", FOLLOW, str(journal)])
    spent = Viewed(0.0, 0.0)
    try:
        yield lambda: spent
    finally:
        process.terminate()
        process.wait()
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
        spent = Viewed(cpu_s, usage.ru_maxrss / 2**10)


def follow(journal: Path) -> None:
    """Fold the events of a journal as they come, ten times a second."""
    state = SessionState()
    with JournalTail(journal) as tail:
        while True:
            new_events = tail.read_new()
            state.journal = tail.reader
            for event in new_events:
                apply(state, event)
            time.sleep(FRAME_S)


def wire(console: Console) -> None:
    """Print the CPU time of the event loop for each streamed piece, of both kinds of client."""
    command = [sys.executable, "-m", "benchmarks.scale", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        for model in (f"openai:test@{url}/v1", f"anthropic:test@{url}"):
            console.print(f"{model.partition(':')[0]}: {asyncio.run(piece_s(model)) * 1e6:.0f} us a piece")
        server.terminate()


async def piece_s(model: str) -> float:
    """Return the loop's CPU seconds for a piece of a streamed reply, while `WIRE_CALLS` replies stream."""
    keys = {"OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none"}
    client = open_client(model, environ=keys, home_recordings=Path("none"))
    pieces: list[Piece] = []
    async with asyncio.TaskGroup() as group:
        for number in range(WIRE_CALLS):
            key = CallKey("starter/softmax", number, 1, ev.Role.GENERATOR, 1)
            group.create_task(client.reply(Request(key, (ev.Message("user", "a prompt"),)), pieces.append))
        await asyncio.sleep(WIRE_S * 0.3)
        began_s, before = time.thread_time(), len(pieces)
        await asyncio.sleep(WIRE_S * 0.5)
        spent_s, count = time.thread_time() - began_s, len(pieces) - before
    await client.close()
    return spent_s / count


def serve() -> None:
    """Serve replies of `WIRE_S` seconds until the process is ended."""
    write = model_server.Handler.write

    def write_slowly(handler: model_server.Handler, data: bytes) -> None:
        time.sleep(1 / WIRE_PIECES_A_S)
        write(handler, data)

    model_server.Handler.write = write_slowly  # type: ignore[method-assign]
    model_server.Quiet.request_queue_size = 2 * WIRE_CALLS
    words = "x" * model_server.PIECE_CHARACTERS * WIRE_PIECES_A_S * WIRE_S
    answer = model_server.says("the end", reasoning=words)
    with model_server.model_server(answer=lambda _: answer) as server:
        print(server.anthropic_url, flush=True)  # noqa: T201
        sys.stdin.read()


def main() -> int:
    """Run a session for each number of GPUs."""
    parser = argparse.ArgumentParser(description="One session on many simulated GPUs.")
    parser.add_argument("gpus", nargs="*", type=int, default=[8, 64, 200])
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--hurry", type=float, default=1.0, help="divides the times of model and judge")
    parser.add_argument("--profile", type=Path, help="file for the profile of the event loop")
    parser.add_argument("--wire", action="store_true", help="only what it costs to read streamed replies")
    parser.add_argument(FOLLOW, type=Path, help=argparse.SUPPRESS)
    parser.add_argument(SERVE, action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        follow(options.follow)
    if options.serve:
        serve()
        return 0
    console = Console(width=170)
    if options.wire:
        wire(console)
        return 0
    for gpus in options.gpus:
        turns = Turns()
        profile = cProfile.Profile() if options.profile else None
        with asyncio.Runner(loop_factory=partial(asyncio.SelectorEventLoop, turns)) as runner:
            table = runner.run(play(gpus, options.minutes, options.hurry, turns, profile))
        load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        console.print(f"{gpus} GPUs, {INSTANCES_A_GPU * gpus:,} instances; load of the machine {load}")
        console.print(table)
        if profile is not None:
            profile.dump_stats(options.profile)
    return 0


if __name__ == "__main__":
    sys.exit(main())
