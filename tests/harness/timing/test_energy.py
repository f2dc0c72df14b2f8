"""Protects energy per call: from a counter with coarse steps, during a run of calls, and `None` if unreliable."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.node.telemetry.samples import Point, Watched
from harness.stages.timing.energy import DRAWN_S, SETTLE_S, energy_a_call
from harness.wire.effort import WITH_ENERGY
from harness.wire.messages.clock import BASELINE, CANDIDATE, Drawn, Measured
from harness.wire.messages.timer import Batch
from harness.wire.results.latency import DeviceState, Window
from tests.support.judge.evaluations import correct
from tests.support.timing.fake_timers import bench
from tests.support.timing.process_times import times
from tests.support.timing.scripted_clock import Pool, ScriptedClock, measure_with
from tui.facts.evaluation.times import energy_words, times_tables
from tui.print.plain import tables_text

PERIOD_S = 0.015


def counter_readings(
    watts: float, *, seconds: float = 3.0, step_s: float = 0.1, late_s: float = 0.0
) -> list[Point]:
    """Readings of an energy counter on a device with constant power; the counter changes every `step_s`."""
    points = []
    for number in range(int(seconds / PERIOD_S)):
        at_s = number * PERIOD_S
        updated_s = math.floor((at_s - late_s) / step_s) * step_s
        points.append(Point(at_s, 1900, 0, energy_j=1000.0 + watts * updated_s))
    return points


@given(
    watts=st.floats(min_value=40, max_value=1500),
    step_s=st.floats(min_value=0.001, max_value=0.12),
    late_s=st.floats(min_value=0, max_value=0.1),
    calls=st.integers(min_value=1, max_value=100_000),
)
def test_steady_power_gives_energy_within_five_percent(
    watts: float, step_s: float, late_s: float, calls: int
) -> None:
    drawn = Drawn(0.5, 0.5 + DRAWN_S, calls)
    energy_mj = energy_a_call(counter_readings(watts, step_s=step_s, late_s=late_s), drawn)
    assert energy_mj == pytest.approx(watts * DRAWN_S / calls * 1e3, rel=0.05)


def test_energy_outside_the_calls_does_not_count() -> None:
    drawn = Drawn(1.0, 1.0 + DRAWN_S, 100)
    idle = [
        point
        for point in counter_readings(80.0, seconds=4.0)
        if not 1.0 + SETTLE_S <= point.at_s <= 1.0 + DRAWN_S
    ]
    busy = [
        msgspec.structs.replace(point, energy_j=(point.energy_j or 0.0) + 5000.0)
        for point in counter_readings(600.0, seconds=4.0)
        if 1.0 + SETTLE_S <= point.at_s <= 1.0 + DRAWN_S
    ]
    points = sorted([*idle, *busy], key=lambda point: point.at_s)
    assert energy_a_call(points, drawn) == pytest.approx(600.0 * DRAWN_S / 100 * 1e3, rel=0.05)


@pytest.mark.parametrize(
    ("points", "drawn"),
    [
        ([], Drawn(0.0, 1.2, 10)),
        ([Point(at * PERIOD_S, 1900) for at in range(200)], Drawn(0.0, 1.2, 10)),
        (counter_readings(300.0, step_s=0.3), Drawn(0.0, 1.2, 10)),
        (counter_readings(300.0), Drawn(0.0, 0.5, 10)),
        (counter_readings(300.0)[:20], Drawn(0.0, 1.2, 10)),
        (
            [
                *counter_readings(300.0)[:40],
                *(
                    Point(at_s=0.6 + point.at_s, energy_j=point.energy_j)
                    for point in counter_readings(300.0)[:60]
                ),
            ],
            Drawn(0.0, 1.2, 10),
        ),
    ],
    ids=["no readings", "no counter", "few steps", "short", "cut off", "counter reset"],
)
def test_unreliable_counter_gives_no_energy(points: list[Point], drawn: Drawn) -> None:
    assert energy_a_call(points, drawn) is None


def energy_calls(energy_s: float) -> dict[str, int]:
    """Calls during the energy measurement, by side; checks that they are each side's longest batch of plain calls."""
    on_bench = bench("fp32")
    on_bench.ms = dict.fromkeys((BASELINE, CANDIDATE), 1.0)
    measured = on_bench.measure(energy_s=energy_s)
    calls_by_side = {
        process.side: process.drawn.calls for process in measured.times if process.drawn is not None
    }
    assert set(calls_by_side) == ({BASELINE, CANDIDATE} if energy_s else set())
    for side, calls in calls_by_side.items():
        assert max(batch.count for batch in on_bench.requests(side, Batch) if batch.kind == "plain") == calls
    return calls_by_side


def test_energy_measurement_adds_calls_of_both_sides() -> None:
    assert min(energy_calls(DRAWN_S).values()) > 50
    assert energy_calls(0.0) == {}


class Counting(Pool):
    """A device with an energy counter."""

    def __init__(self, points: list[Point], *, energy_j: float | None = 1000.0) -> None:
        super().__init__()

        async def state(_own: object = None) -> DeviceState:
            return DeviceState(energy_j=energy_j)

        async def end() -> Watched:
            self.watch.calls.append("end")
            return Watched(Window(source="nvml", seconds=3.0), tuple(points))

        self.watch.state, self.watch.end = state, end  # type: ignore[method-assign]


async def measure_energy(pool: Pool, effort: object) -> tuple[list[float], object]:
    """The `energy_s` of each request to the clock, and the timing."""
    requested: list[float] = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        measure = await clock.reach_lease()
        requested.append(measure.energy_s)
        processes = list(times(baseline=1.0, candidate=0.5))
        if measure.energy_s:
            processes[0] = msgspec.structs.replace(processes[0], drawn=Drawn(0.2, 1.4, 1200))
            processes[1] = msgspec.structs.replace(processes[1], drawn=Drawn(1.5, 2.7, 2400))
        await clock.send(Measured(times=tuple(processes), floor=None))

    return requested, await measure_with(script, pool, effort=effort)


async def test_latency_has_energy_of_both_sides() -> None:
    requested, timing = await measure_energy(Counting(counter_readings(500.0)), WITH_ENERGY)
    assert requested == [DRAWN_S]
    (latency,) = timing.latency  # type: ignore[attr-defined]
    assert latency.baseline.energy_mj == pytest.approx(500.0, rel=0.05)
    assert latency.candidate.energy_mj == pytest.approx(250.0, rel=0.05)
    candidate, _, baseline = energy_words(latency).partition(" / ")
    assert (float(candidate), float(baseline)) == (pytest.approx(250, rel=0.05), pytest.approx(500, rel=0.05))
    page = tables_text(times_tables(msgspec.structs.replace(correct(speedup=2.0), latency=(latency,))))
    assert "plain calls back to back" in " ".join(page.split())


async def test_note_names_case_without_energy() -> None:
    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.reach_lease()
        await clock.send(Measured(times=tuple(times(baseline=1.0, candidate=0.5)), floor=None))

    timing = await measure_with(script, Counting(counter_readings(500.0)), effort=WITH_ENERGY)
    (latency,) = timing.latency
    assert latency.candidate.energy_mj is None
    assert any("not measured" in note and latency.case in note for note in timing.notes)
