"""Protects how the engine serves the clock: a scripted clock, and real processes as timers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from harness.node.telemetry.samples import DevicePoint, Watched
from harness.stages.timing.performance import Crowded
from harness.stages.verdicts import conclude
from harness.wire.errors import WorkerDied
from harness.wire.messages.clock import (
    BASELINE,
    CANDIDATE,
    PLAYERS,
    ROUGH,
    WHOLE,
    Effort,
    Measured,
    ProcessTimes,
    Timer,
)
from harness.wire.messages.guest import Alive
from harness.wire.results.evaluation import ErrorReport, Verdict
from harness.wire.results.latency import DeviceReading
from tests.support.timing.process_times import GPU, QUIET, times
from tests.support.timing.process_times import process as process_times
from tests.support.timing.scripted_clock import Pool, Script, ScriptedClock, measure_with


async def to_the_end(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.reach_lease()
    await clock.send(Alive())
    await clock.send(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))


async def to_the_lease(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.reach_lease()


async def to_a_lost_judge(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.reach_lease()
    clock.close()


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (to_the_end, None),
        (to_the_lease, asyncio.CancelledError),
        (to_a_lost_judge, WorkerDied),
    ],
    ids=["measured", "cancelled", "lost judge"],
)
async def test_no_timer_and_no_window_outlives_the_lease(
    script: Script, error: type[BaseException] | None
) -> None:
    pool = Pool()
    is_cancelled = error is asyncio.CancelledError
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        timing = await measure_with(script, pool, cancel=is_cancelled)
        assert [latency.speedup for latency in timing.latency] == [pytest.approx(2.0)]
        assert timing.before == timing.after == DeviceReading(clock_mhz=1980)
    assert (pool.at_release, len(pool.server.processes)) == ([], 2)
    assert (pool.watch.windows, pool.watching_at_release) == (1, False)


def crowded(samples: Sequence[ProcessTimes], *, without: str = "") -> Watched:
    """Another process is there in all blocks, but not in those of the case `without`; it is gone a second later."""
    points = [
        DevicePoint(at_s, 1980, others=int(process.case != without))
        for process in samples
        for block in process.blocks
        for at_s in (block.began_s, block.ended_s)
    ]
    points.sort(key=lambda point: point.at_s)
    return Watched(QUIET, (*points, DevicePoint(points[-1].at_s + 1, 1980, 0)))


def at_different_clocks(samples: Sequence[ProcessTimes]) -> Watched:
    """The blocks of the candidate, which come later, run at a lower clock."""
    return Watched(
        QUIET,
        tuple(
            DevicePoint(at_s, 1600 if process.side == CANDIDATE else 1980)
            for process in samples
            for block in process.blocks
            for at_s in (block.began_s, block.ended_s)
        ),
    )


def timing_of(*samples: tuple[ProcessTimes, ...]) -> Script:
    """The clock's side of one timing after another."""

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        for processes in samples:
            await clock.reach_lease()
            await clock.send(Measured(times=processes, floor=None))

    return script


SAMPLES = times(baseline=1.0, candidate=0.5)


@pytest.mark.parametrize("effort", [WHOLE, ROUGH[0]])
async def test_case_that_others_disturbed_is_timed_again_once(effort: Effort) -> None:
    """A rough timing too: else a session that ends on the same GPU would drop a variant from a sweep."""
    pool = Pool()
    pool.watch.watched = [crowded(SAMPLES), Watched(QUIET)]
    timing = await measure_with(timing_of(SAMPLES, SAMPLES), pool, effort=effort)
    assert [row.case for row in (*timing.latency, *timing.rough)] == ["fp32"]
    assert timing.notes[0] == "timed twice: the first time the device was disturbed, and fp32 got no time"
    assert (pool.watch.windows, pool.at_release) == (2, [])
    pool = Pool()
    pool.watch.watched = [crowded(SAMPLES), crowded(SAMPLES)]
    timing = await measure_with(timing_of(SAMPLES, SAMPLES), pool, effort=effort)
    assert (timing.latency, timing.rough) == ((), ())
    assert "samples were disturbed" in timing.detail
    assert pool.watch.windows == 2, "not a third time"


async def test_floor_is_measured_again_after_a_disturbance() -> None:
    """The judge keeps its floor for all candidates, so one that was measured beside others would spoil them all."""
    pool, new_floors = Pool(), list[bool]()
    pool.watch.watched = [crowded(SAMPLES), Watched(QUIET)]

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        for _ in range(2):
            new_floors.append((await clock.reach_lease()).new_floor)
            await clock.send(Measured(times=SAMPLES, floor=None))

    await measure_with(script, pool)
    assert new_floors == [False, True]


async def test_second_timing_that_is_disturbed_more_does_not_count() -> None:
    pool = Pool()
    late = tuple(
        process
        for pair in range(3)
        for process in (
            process_times(BASELINE, pair, 1.0, case="fp16-ragged", began_s=100.0),
            process_times(CANDIDATE, pair, 0.5, case="fp16-ragged", began_s=100.0),
        )
    )
    both = (*SAMPLES, *late)
    pool.watch.watched = [crowded(both, without="fp16-ragged"), crowded(both)]
    timing = await measure_with(timing_of(both, both), pool)
    assert [latency.case for latency in timing.latency] == ["fp16-ragged"]
    assert timing.notes[-1] == "fp32: timed a second time, when the device was disturbed even more"


async def test_kernel_that_moves_the_clock_itself_is_not_timed_again() -> None:
    pool = Pool()
    samples = tuple(
        process
        for pair in range(3)
        for process in (
            process_times(BASELINE, pair, 1.0, began_s=20.0 * pair),
            process_times(CANDIDATE, pair, 0.5, began_s=20.0 * pair + 10),
        )
    )
    pool.watch.watched = [at_different_clocks(samples)]
    timing = await measure_with(timing_of(samples), pool)
    assert not timing.latency
    assert "samples were disturbed by a change of the clock" in timing.detail
    assert pool.watch.windows == 1


def with_a_killed_timer(side: str) -> Script:
    """Kill the first timer of a side; the clock reports its end."""

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.reach_lease()
        pool.server.processes[(BASELINE, CANDIDATE).index(side)].kill()
        gone = ErrorReport(kind="exit", message="the process ended in case fp32")
        await clock.send(
            Measured(
                times=(),
                floor=None,
                error=gone if side == CANDIDATE else None,
                problem="" if side == CANDIDATE else gone.message,
                ended=side,
            )
        )

    return script


@pytest.mark.parametrize("side", [BASELINE, CANDIDATE])
async def test_killed_timer_is_no_verdict_the_first_time(side: str) -> None:
    timing = await measure_with(with_a_killed_timer(side), Pool())
    assert "killed by SIGKILL" in timing.doubt
    if side == BASELINE:
        assert (conclude(timing.error), timing.ok) == (Verdict.CORRECT, None)
    else:
        assert timing.error is not None
        assert (conclude(timing.error), timing.error.kind) == (Verdict.CRASH, "SIGKILL")


async def test_players_of_an_exam_are_its_own_and_start_before_the_lease() -> None:
    pool, started, of_looks = Pool(), list[int](), list[Timer]()

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.reach_lease()
        started.append(len(pool.server.processes))
        of_looks.extend([*await clock.take_players(), *await clock.take_players()])
        started.append(len(pool.server.processes))
        measured = Measured(times=times(baseline=1.0, candidate=0.5), floor=None, players_reusable=True)
        await clock.send(measured)

    await measure_with(script, pool)
    first = len(pool.server.alive)
    await measure_with(script, pool, exam=True)
    assert started[2] == started[3]
    exam_players = of_looks[2 * PLAYERS :]
    assert len({player.pid for player in of_looks}) == len(of_looks)
    assert not any(player.served for player in exam_players)
    assert len(pool.server.alive) == first, "the players of other timings outlive an exam"
    pool.players.drop(GPU)
    await pool.server.all_ended()


async def test_nothing_is_timed_while_candidate_processes_remain() -> None:
    async def one_process() -> int:
        return 1

    pool = Pool()
    with pytest.raises(Crowded):
        await measure_with(to_the_end, pool, alone=one_process())
    assert len(pool.server.processes) == 2
    assert (pool.server.alive, pool.watch.windows, pool.at_release) == ([], 0, None)
