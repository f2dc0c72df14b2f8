"""How the engine serves a clock: a scripted one, with real processes in the place of timers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.hardware.targets import target
from harness.stages.timing.baselines import Against
from harness.stages.timing.performance import Crowded, Performance
from harness.wire import limits
from harness.wire.clock_messages import CANDIDATE, TAPE, Measure, Measured, NeedTimers, Timer
from harness.wire.errors import WorkerDied
from harness.wire.judge_messages import Alive
from harness.wire.latency import DeviceState
from harness.wire.limits import TimeLimits

from .scripted_clock import Pool, ScriptedClock, timed
from .timings import GPU, TASK, times


async def to_the_end(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.started()
    await clock.tell(Alive())
    await clock.tell(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))


async def to_the_lease(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.started()


@pytest.mark.asyncio
async def test_a_clock_is_served_to_the_end_and_no_timer_outlives_the_lease() -> None:
    pool = Pool()
    timing = await timed(to_the_end, pool)
    assert [one.speedup for one in timing.latency] == [pytest.approx(2.0)]
    assert (timing.before, timing.after) == (DeviceState(product="X"), DeviceState(product="X"))
    assert pool.at_release == []
    assert sorted(pool.server.ended) == list(range(6))
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_cancelled_while_it_is_timed_all_timers_end_before_the_device_is_given_back() -> None:
    pool = Pool()
    with pytest.raises(asyncio.CancelledError):
        await timed(to_the_lease, pool, cancel=True)
    assert pool.at_release == []
    assert len(pool.server.processes) == 6
    assert not pool.watching_at_release
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_a_judge_that_is_lost_while_it_times_is_said_in_words_and_leaves_no_timer() -> None:
    pool = Pool()

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.started()
        clock.leave()

    with pytest.raises(WorkerDied, match="the judge was lost while it timed"):
        await timed(script, pool)
    assert pool.at_release == []
    assert pool.watch.words == ["begin", "end"]


@pytest.mark.asyncio
async def test_a_clock_that_says_nothing_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ORACLE_S", 0.0)
    pool = Pool()
    pool.allowed = TimeLimits(call_s=0.05)

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.hear(Measure)
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await timed(script, pool)


@pytest.mark.asyncio
async def test_timers_wanted_instead_of_others_start_when_those_are_gone() -> None:
    pool = Pool()
    lived: list[list[int]] = []

    async def script(clock: ScriptedClock, pool: Pool) -> None:
        await clock.started()
        await clock.tell(NeedTimers(sides=(TAPE,), count=1, instead=False))
        assert (await clock.hear(Timer)).pair == 3
        lived.append(pool.server.alive)
        await clock.tell(NeedTimers(sides=(CANDIDATE,), count=2, instead=True))
        assert [(await clock.hear(Timer)).pair for _ in range(2)] == [4, 5]
        lived.append(pool.server.alive)
        await clock.tell(Measured(times=(), floor=None, problem="enough"))

    timing = await timed(script, pool)
    assert lived == [[0, 1, 2, 3, 4, 5, 6], [7, 8]]
    assert "enough" in timing.detail
    assert pool.server.alive == []


@pytest.mark.asyncio
async def test_beside_processes_that_a_candidate_left_behind_nothing_is_timed() -> None:
    async def one_is_left() -> int:
        return 1

    pool = Pool()
    with pytest.raises(Crowded):
        await timed(to_the_end, pool, alone=one_is_left())
    assert len(pool.server.processes) == 6
    assert (pool.server.alive, pool.watch.words, pool.at_release) == ([], [], None)


@pytest.mark.asyncio
async def test_without_a_baseline_nothing_is_started(tmp_path: Path) -> None:
    pool = Pool()
    slot = SimpleNamespace(device=GPU, server=pool.server)
    task = msgspec.structs.replace(TASK, folder=tmp_path)
    performance = Performance(cast(Any, pool), cast(Any, slot), task, target("sm_90"), seed=7)
    timing = await performance.measure(cast(Any, None), "x = 2", rival=None, against=Against())
    assert timing.detail.startswith("not timed: ")
    assert (timing.ok, pool.server.processes) == (None, {})
