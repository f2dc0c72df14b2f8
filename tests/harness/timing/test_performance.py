"""Protects how the engine serves the clock: a scripted clock, and real processes as timers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.hardware.targets import target
from harness.node.telemetry.samples import Point
from harness.processes.process_endings import JudgeAgain
from harness.stages.timing.baselines import Against, Baseline
from harness.stages.timing.performance import Crowded, Performance
from harness.stages.verdicts import conclude
from harness.wire import limits
from harness.wire.errors import WorkerDied
from harness.wire.limits import TimeLimits
from harness.wire.messages.clock import BASELINE, CANDIDATE, BaselineRecorded, Measure, Measured, TapedCall
from harness.wire.messages.guest import Alive
from harness.wire.messages.judge import Proceed
from harness.wire.results.evaluation import ErrorReport, Verdict
from harness.wire.results.latency import DeviceState
from tests.support.timing.process_times import GPU, TASK, times
from tests.support.timing.scripted_clock import Pool, Script, ScriptedClock, measure_with


async def to_the_end(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.reach_lease()
    await clock.send(Alive())
    await clock.send(Measured(times=times(baseline=1.0, candidate=0.5), floor=None))


async def to_the_lease(clock: ScriptedClock, _pool: Pool) -> None:
    await clock.reach_lease()


async def test_no_timer_outlives_the_lease() -> None:
    pool = Pool()
    timing = await measure_with(to_the_end, pool)
    assert [latency.speedup for latency in timing.latency] == [pytest.approx(2.0)]
    assert (timing.before, timing.after) == (DeviceState(clock_mhz=1980), DeviceState(clock_mhz=1980))
    assert pool.at_release == []
    assert sorted(pool.server.ended) == list(range(2))
    assert pool.watch.calls == ["begin", "end"]


async def test_case_that_others_disturbed_is_judged_again_once() -> None:
    pool = Pool()
    samples = times(baseline=1.0, candidate=0.5)
    crowd = [
        Point(at_s, 1980, others=1)
        for process in samples
        for block in process.blocks
        for at_s in (block.began_s, block.ended_s)
    ]
    pool.watch.points = (*crowd, Point(crowd[-1].at_s + 1, 1980, 0))

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.reach_lease()
        await clock.send(Alive())
        await clock.send(Measured(times=samples, floor=None))

    with pytest.raises(JudgeAgain, match=r"fp32 got no time, because \d+ samples were disturbed"):
        await measure_with(script, pool)
    assert pool.at_release == []
    timing = await measure_with(script, Pool(), again=True)
    assert [latency.case for latency in timing.latency] == ["fp32"], "undisturbed, the second time"
    pool = Pool()
    pool.watch.points = (*crowd, Point(crowd[-1].at_s + 1, 1980, 0))
    timing = await measure_with(script, pool, again=True)
    assert not timing.latency
    assert "samples were disturbed" in timing.detail


async def test_cancelled_timing_ends_timers_before_the_lease() -> None:
    pool = Pool()
    with pytest.raises(asyncio.CancelledError):
        await measure_with(to_the_lease, pool, cancel=True)
    assert pool.at_release == []
    assert len(pool.server.processes) == 2
    assert not pool.watching_at_release
    assert pool.watch.calls == ["begin", "end"]


async def test_lost_judge_is_reported_and_leaves_no_timer() -> None:
    pool = Pool()

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.reach_lease()
        clock.close()

    with pytest.raises(WorkerDied, match="the judge was lost while it timed"):
        await measure_with(script, pool)
    assert pool.at_release == []
    assert pool.watch.calls == ["begin", "end"]


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

    with pytest.raises(JudgeAgain, match="killed by SIGKILL"):
        await measure_with(script, pool := Pool())
    await pool.server.all_ended()
    timing = await measure_with(script, Pool(), again=True)
    assert timing.error is not None
    assert timing.error.kind == "SIGKILL"


@pytest.mark.parametrize("side", [BASELINE, CANDIDATE])
async def test_killed_timer_is_no_verdict_the_first_time(side: str) -> None:
    pool = Pool()
    with pytest.raises(JudgeAgain, match="killed by SIGKILL"):
        await measure_with(with_a_killed_timer(side), pool)
    assert pool.at_release == []
    timing = await measure_with(with_a_killed_timer(side), Pool(), again=True)
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
    ("options", "script", "is_kept"),
    [
        ({}, playing(), True),
        ({}, playing(reusable=False), False),
        ({}, playing(tapes=200), False),
        ({"exam": True}, playing(), False),
    ],
    ids=["kept", "failed", "worn", "exam"],
)
async def test_players_outlive_a_timing(options: dict[str, bool], script: Script, *, is_kept: bool) -> None:
    pool = Pool()
    served.clear()
    await measure_with(script, pool)
    await measure_with(playing(), pool, **options)
    assert served == [[False, False], [is_kept, is_kept]]
    assert len(pool.server.processes) == 2 + 2 + 2 + (0 if is_kept else 2)
    assert len(pool.server.alive) == 2, "the players of the last timing wait for the next"
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
    assert (pool.server.alive, pool.watch.calls, pool.at_release) == ([], [], None)


async def test_no_timer_starts_without_a_baseline(tmp_path: Path) -> None:
    pool = Pool()
    slot = SimpleNamespace(device=GPU, server=pool.server)
    task = msgspec.structs.replace(TASK, folder=tmp_path)
    performance = Performance(cast(Any, pool), cast(Any, slot), task, target("sm_90"), seed=7)
    timing = await performance.measure(cast(Any, None), "x = 2", against=Against())
    assert timing.detail.startswith("not timed: ")
    assert (timing.ok, pool.server.processes) == (None, {})
