"""Protects the ladder of clocks on a real GPU: each clock is forced, and compared with graphs."""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import torch

from harness import DevicePool, Verdict, evaluate, target
from harness.processes.starting.spares import TIMER, Worker
from harness.wire.channels.channel import Channel
from harness.wire.limits import ANSWER_BYTES
from harness.wire.messages.clock import BASELINE, CANDIDATE
from harness.wire.messages.guest import Ask, Load, Loaded
from harness.wire.messages.timer import (
    SETS,
    Done,
    Prepare,
    Prepared,
    Rung,
    TapedCall,
    count_copies,
)
from harness.wire.results.latency import TimingMethod
from harness.worker.clock.lines import TimerLine
from harness.worker.clock.timed_seat import TimedSeat
from harness.worker.kit.arena import Arena
from suites import baseline_source, load_task
from tests.support.judge.gpu import DEVICE, gpu_pool, needs_gpu

__all__ = ["gpu_pool"]
pytestmark = [pytest.mark.gpu, pytest.mark.judge, needs_gpu, pytest.mark.asyncio(loop_scope="session")]

SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def wait_kernel(x, out, rounds, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at)
    for _ in range(rounds):
        value = value * 0.999 + 0.001
    tl.store(out + at, value)


def wait(x, rounds):
    out = torch.empty_like(x)
    wait_kernel[(x.numel() // 1024,)](x, out, rounds, BLOCK=1024)
    return out
"""
ROUNDS = {5: 500, 50: 5_000, 500: 50_000}
"""Rounds of the kernel by about its time in microseconds."""
RUNGS = (
    Rung(TimingMethod.GRAPH, 256),
    Rung(TimingMethod.GRAPH, 32),
    Rung(TimingMethod.BATCH),
    Rung(TimingMethod.PROFILER),
    Rung(TimingMethod.EVENTS),
)
SHARE = 0.02
GAP_US = {
    TimingMethod.GRAPH: 1.0,
    TimingMethod.BATCH: 2.5,
    TimingMethod.PROFILER: 0.2,
    TimingMethod.EVENTS: 5.0,
}
"""Largest time that a clock adds to each call, whatever the kernel's length."""
"""Difference from the time in a graph of 256 calls that is allowed. Events add a constant, which is shown."""
LAUNCHES, BLOCKS, REPLAYS = 256, 5, 3
FLUSH_BYTES = 256 << 20


class Seat:
    """One timer of the pool: a real, sandboxed process."""

    def __init__(self, worker: Worker, side: str) -> None:
        self.link = TimerLine(
            Channel(worker.end), side=side, pair=0, pid=worker.pid, answer_bytes=ANSWER_BYTES
        )
        self.link.hello()

    def prepare(self, rounds: int) -> Prepared:
        """Prepare a case of the kernel with so many rounds."""
        arenas = [Arena({"x": torch.rand(1 << 18), "rounds": rounds}, shared=True) for _ in range(SETS)]
        request = Prepare(
            entry_point="wait",
            case="wait",
            arguments=arenas[0].arguments,
            arena_bytes=arenas[0].size_bytes,
            handles=(),
            rotate_bytes=FLUSH_BYTES,
            flush_bytes=FLUSH_BYTES,
            chosen={},
            ahead=False,
        )
        self.copies = count_copies(SETS, arenas[0].size_bytes, FLUSH_BYTES)
        try:
            descriptors = tuple(arena.descriptor for arena in arenas)
            return self.link.ask(request, Prepared, descriptors, wall_s=60)
        finally:
            for arena in arenas:
                arena.close()

    def record(self, rounds: int) -> TapedCall:
        """Return the tape of a call with so many rounds."""
        self.prepare(rounds)
        recorded = self.link.ask(Ask.RECORD, TapedCall, wall_s=60)
        return TapedCall(recorded.tape, recorded.why_not)


@asynccontextmanager
async def seats(pool: DevicePool) -> AsyncIterator[tuple[Seat, Seat]]:
    """A recorder of the source and a player, with the GPU held alone."""
    async with pool.slot(on=DEVICE) as slot, pool.leases.timing(slot):
        workers = [await pool.spares.take(TIMER, slot.device) for _ in range(2)]
        recorder, player = (
            Seat(worker, side) for worker, side in zip(workers, (CANDIDATE, BASELINE), strict=True)
        )
        try:
            load = Load(SOURCE, slot.device.target or "", ("wait",))
            await asyncio.to_thread(recorder.link.ask, load, Loaded, wall_s=120)
            yield recorder, player
        finally:
            for worker in workers:
                worker.child.end()
            for seat in (recorder, player):
                seat.link.close()


def time_by(player: Seat, rounds: int, call: TapedCall, rung: Rung) -> float:
    """Return microseconds of a call in the player, by one clock of the ladder."""
    assert call.tape is not None, call.why_not
    player.link.ask(call.tape, Done, wall_s=60)
    prepared = player.prepare(rounds)
    seat = TimedSeat(player.link, prepared, cold=True, copies=player.copies, call=call, taped=True)
    seat.rung = rung
    if rung.method is not TimingMethod.EVENTS:
        seat.begin_capture(LAUNCHES)
        assert seat.end_capture(LAUNCHES, cold=True) == ""
    samples = [ms for _ in range(BLOCKS) for ms in seat.block(REPLAYS).samples_ms]
    return statistics.median(samples) * 1e3


async def test_clocks_of_the_ladder_agree(gpu_pool: DevicePool, capsys: Any) -> None:
    """Prints a table. The inputs of 256 calls exceed the caches, so each clock finds them cold."""
    rows = {}
    async with seats(gpu_pool) as (recorder, player):
        for about_us, rounds in ROUNDS.items():
            call = await asyncio.to_thread(recorder.record, rounds)
            rows[about_us] = [await asyncio.to_thread(time_by, player, rounds, call, rung) for rung in RUNGS]
    with capsys.disabled():
        names = "".join(f"{f'{rung.method.value} {rung.nodes or str()}':>16}" for rung in RUNGS)
        sys.stdout.write(f"\n{'about us':>10}{names}\n")
        for about_us, times in rows.items():
            cells = "".join(f"{us:>8.2f} {us / times[0] - 1:>+6.1%} " for us in times)
            sys.stdout.write(f"{about_us:>10}{cells}\n")
    far = [
        f"{rung.method.value} of a kernel of {times[0]:.1f} us: {us:.2f} us"
        for times in rows.values()
        for rung, us in zip(RUNGS, times, strict=True)
        if abs(us - times[0]) > SHARE * times[0] + GAP_US[rung.method]
    ]
    assert not far


@pytest.mark.parametrize(("nodes", "method"), [(0, TimingMethod.BATCH), (4, TimingMethod.GRAPH)])
async def test_candidate_is_timed_by_what_works_on_its_gpu(nodes: int, method: TimingMethod) -> None:
    task = load_task("vector_add")
    async with DevicePool((DEVICE,), tasks=[task], trusted_graphs=lambda _: nodes) as pool:
        own = target(pool.devices[0].target or "")
        evaluation = await evaluate(baseline_source(task), task, pool, targets=[own], seed=1)
    assert evaluation.verdict is Verdict.CORRECT
    short = [latency for latency in evaluation.latency if latency.candidate_ms < 0.1]
    assert short
    assert {latency.method for latency in short} == {method}
    assert {latency.confirmed for latency in short} == {"tape"}
