"""Protects how the engine serves the clock: a scripted clock, and real processes as timers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.hardware.targets import target
from harness.node.telemetry.samples import DevicePoint, Watched
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.performance import Crowded, Performance
from harness.stages.verdicts import conclude
from harness.wire import limits
from harness.wire.errors import WorkerDied
from harness.wire.limits import TimeLimits
from harness.wire.messages.clock import (
    BASELINE,
    CANDIDATE,
    PLAYERS,
    ROUGH,
    WHOLE,
    BaselineRecorded,
    Effort,
    Floor,
    Measure,
    Measured,
    ProcessTimes,
    Timer,
)
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import Proceed
from harness.wire.messages.timer import TapedCall
from harness.wire.results.evaluation import ErrorReport, Verdict
from harness.wire.results.latency import DeviceReading
from harness.worker.clock import floor
from tests.support.timing.process_times import GPU, QUIET, TASK, times
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


async def test_floor_is_measured_again_after_a_disturbance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge keeps its floor for all candidates, so one that was measured beside others would spoil them all."""
    pool, new_floors = Pool(), list[bool]()
    pool.watch.watched = [crowded(SAMPLES), Watched(QUIET)]

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        for _ in range(2):
            new_floors.append((await clock.reach_lease()).new_floor)
            await clock.send(Measured(times=SAMPLES, floor=None))

    await measure_with(script, pool)
    assert new_floors == [False, True]
    empty_ms = iter((9.0, 5.0))

    @functools.cache
    def measure_clock(_flush_bytes: int, _nodes: int) -> Floor:
        return Floor(next(empty_ms), ())

    monkeypatch.setattr(floor, "_measure_clock", measure_clock)
    assert [floor.measure(1, "", 0).empty_ms for _ in range(2)] == [9.0, 9.0]
    floor.forget()
    assert floor.measure(1, "", 0).empty_ms == 5.0


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


async def test_killed_player_is_no_verdict_the_first_time() -> None:
    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.reach_lease()
        await clock.take_players()
        pool.server.processes[2].kill()
        gone = ErrorReport(kind="exit", message="the process ended in case fp32")
        await clock.send(Measured(times=(), floor=None, error=gone, ended=CANDIDATE))

    timing = await measure_with(script, pool := Pool())
    await pool.server.all_ended()
    assert "killed by SIGKILL" in timing.doubt
    assert timing.error is not None
    assert timing.error.kind == "SIGKILL"


@pytest.mark.parametrize("side", [BASELINE, CANDIDATE])
async def test_killed_timer_is_no_verdict_the_first_time(side: str) -> None:
    timing = await measure_with(with_a_killed_timer(side), Pool())
    assert "killed by SIGKILL" in timing.doubt
    if side == BASELINE:
        assert (conclude(timing.error), timing.ok) == (Verdict.CORRECT, None)
    else:
        assert timing.error is not None
        assert (conclude(timing.error), timing.error.kind) == (Verdict.CRASH, "SIGKILL")


def playing(*, reusable: bool = True, tapes: int = 12) -> Script:
    """Time with players."""

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.reach_lease()
        served.append([player.served for player in await clock.take_players()])
        measured = Measured(times=times(baseline=1.0, candidate=0.5), floor=None)
        await clock.send(msgspec.structs.replace(measured, players_reusable=reusable, tapes_played=tapes))

    return script


served: list[list[bool]] = []
"""Whether the players of each timing served another one."""


@pytest.mark.parametrize(
    ("script", "is_kept"),
    [
        (playing(), True),
        (playing(reusable=False), False),
        (playing(tapes=200), False),
    ],
    ids=["kept", "failed", "worn"],
)
async def test_players_outlive_a_timing(script: Script, *, is_kept: bool) -> None:
    pool = Pool()
    served.clear()
    await measure_with(script, pool)
    await measure_with(playing(), pool)
    assert served == [[False] * PLAYERS, [is_kept] * PLAYERS]
    assert len(pool.server.processes) == 2 + PLAYERS + 2 + (0 if is_kept else PLAYERS)
    assert len(pool.server.alive) == PLAYERS, "the players of the last timing wait for the next"
    pool.players.drop(GPU)
    await pool.server.all_ended()


async def test_players_of_an_exam_are_its_own_and_start_before_the_lease() -> None:
    pool, started, of_looks = Pool(), list[int](), list[Timer]()
    await measure_with(playing(), pool)

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.reach_lease()
        started.append(len(pool.server.processes))
        of_looks.extend([*await clock.take_players(), *await clock.take_players()])
        started.append(len(pool.server.processes))
        await clock.send(
            Measured(times=times(baseline=1.0, candidate=0.5), floor=None, players_reusable=True)
        )

    await measure_with(script, pool, exam=True)
    assert started[0] == started[1]
    assert (len({player.pid for player in of_looks}), any(player.served for player in of_looks)) == (6, False)
    assert len(pool.server.alive) == PLAYERS, "the players of other timings outlive an exam"
    pool.players.drop(GPU)
    await pool.server.all_ended()


async def test_players_that_failed_end_before_the_clock_gets_others() -> None:
    pool = Pool()

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        assert (await clock.reach_lease()).graph_nodes == 64
        await clock.take_players()
        before = pool.server.alive
        others = await clock.take_players()
        assert not any(player.served for player in others)
        assert not set(before[-PLAYERS:]) & set(pool.server.alive)
        await clock.send(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))

    timing = await measure_with(script, pool)
    assert timing.latency
    pool.players.drop(GPU)
    await pool.server.all_ended()


async def test_calls_of_the_baseline_are_recorded_once() -> None:
    pool = Pool()
    call = TapedCall(tape=None, why_not="host code")
    known: list[dict[str, TapedCall]] = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        known.append((await clock.reach_lease()).baseline_calls)
        if not known[-1]:
            await clock.send(BaselineRecorded(calls={"fp32": call}))
            await clock.receive(Proceed)
        await clock.send(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))

    await measure_with(script, pool)
    await measure_with(script, pool)
    await measure_with(script, pool, against=Against(Baseline("another.py", "x = 3")))
    assert known == [{}, {"fp32": call}, {}]


async def test_silent_clock_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ORACLE_S", 0.0)
    pool = Pool()
    pool.allowed = TimeLimits(call_s=0.05)

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.receive(Measure)
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await measure_with(script, pool)


async def test_nothing_is_timed_while_candidate_processes_remain() -> None:
    async def one_process() -> int:
        return 1

    pool = Pool()
    with pytest.raises(Crowded):
        await measure_with(to_the_end, pool, alone=one_process())
    assert len(pool.server.processes) == 2
    assert (pool.server.alive, pool.watch.windows, pool.at_release) == ([], 0, None)


async def test_no_timer_starts_without_a_baseline(tmp_path: Path) -> None:
    pool = Pool()
    slot = SimpleNamespace(device=GPU, server=pool.server)
    task = msgspec.structs.replace(TASK, folder=tmp_path)
    performance = Performance(cast(Any, pool), cast(Any, slot), task, target("sm_90"), seed=7)
    timing = await performance.measure(cast(Any, None), "x = 2", against=Against())
    assert timing.detail.startswith("not timed: ")
    assert (timing.ok, pool.server.processes) == (None, {})
