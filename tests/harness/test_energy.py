"""Energy a call: from a counter that grows in steps, over a stretch of calls alone, and only where that can tell."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.node.telemetry import Point, Watched
from harness.stages.timing.energy import DRAWN_S, SETTLE_S, energy_a_call
from harness.wire.clock_messages import BASELINE, CANDIDATE, RIVAL, Drawn, Measured
from harness.wire.effort import WITH_ENERGY
from harness.wire.latency import DeviceState, Window
from harness.wire.timer_messages import Batch
from tests.support.evaluations import correct
from tui.measured import energy_words
from tui.measured import timing as plain_timing

from .fake_timers import bench
from .scripted_clock import Pool, ScriptedClock, timed
from .timings import times

PERIOD_S = 0.015


def counted(
    watts: float, *, began_s: float = 0.0, seconds: float = 3.0, step_s: float = 0.1, late_s: float = 0.0
) -> list[Point]:
    """Readings of a counter that is brought up to date every `step_s`, of a device that draws so much all the time."""
    found = []
    for number in range(int(seconds / PERIOD_S)):
        at_s = began_s + number * PERIOD_S
        known_s = math.floor((at_s - late_s) / step_s) * step_s
        found.append(Point(at_s, 1900, 0, energy_j=1000.0 + watts * known_s))
    return found


@given(
    watts=st.floats(min_value=40, max_value=1500),
    step_s=st.floats(min_value=0.001, max_value=0.12),
    late_s=st.floats(min_value=0, max_value=0.1),
    calls=st.integers(min_value=1, max_value=100_000),
)
def test_a_steady_draw_is_found_within_a_few_percent_whatever_the_counters_steps(
    watts: float, step_s: float, late_s: float, calls: int
) -> None:
    drawn = Drawn(0.5, 0.5 + DRAWN_S, calls)
    found = energy_a_call(counted(watts, step_s=step_s, late_s=late_s), drawn)
    assert found == pytest.approx(watts * DRAWN_S / calls * 1e3, rel=0.05)


def test_what_was_drawn_before_and_after_the_calls_does_not_count() -> None:
    drawn = Drawn(1.0, 1.0 + DRAWN_S, 100)
    idle = [
        point for point in counted(80.0, seconds=4.0) if not 1.0 + SETTLE_S <= point.at_s <= 1.0 + DRAWN_S
    ]
    busy = [
        msgspec.structs.replace(point, energy_j=(point.energy_j or 0.0) + 5000.0)
        for point in counted(600.0, seconds=4.0)
        if 1.0 + SETTLE_S <= point.at_s <= 1.0 + DRAWN_S
    ]
    points = sorted([*idle, *busy], key=lambda point: point.at_s)
    assert energy_a_call(points, drawn) == pytest.approx(600.0 * DRAWN_S / 100 * 1e3, rel=0.05)


@pytest.mark.parametrize(
    ("points", "drawn"),
    [
        ([], Drawn(0.0, 1.2, 10)),
        ([Point(at * PERIOD_S, 1900) for at in range(200)], Drawn(0.0, 1.2, 10)),
        (counted(300.0, step_s=0.3), Drawn(0.0, 1.2, 10)),
        (counted(300.0), Drawn(0.0, 0.5, 10)),
        (counted(300.0)[:20], Drawn(0.0, 1.2, 10)),
        (
            [
                *counted(300.0)[:40],
                *(Point(at_s=0.6 + one.at_s, energy_j=one.energy_j) for one in counted(300.0)[:60]),
            ],
            Drawn(0.0, 1.2, 10),
        ),
    ],
    ids=["no readings", "no counter", "few steps", "short", "cut off", "began anew"],
)
def test_where_the_counter_cannot_tell_nothing_is_said(points: list[Point], drawn: Drawn) -> None:
    assert energy_a_call(points, drawn) is None


def draws(*sides: str, energy_s: float) -> dict[str, int]:
    """The longest batch of plain calls that each side was asked for, and what the clock says that they drew."""
    found = bench("fp32")
    found.ms = dict.fromkeys(sides, 1.0)
    measured = found.measure(energy_s=energy_s)
    drew = {one.side: one.drawn.calls for one in measured.times if one.drawn is not None}
    assert set(drew) == ({BASELINE, CANDIDATE} if energy_s else set())
    for side, calls in drew.items():
        assert max(one.count for one in found.met(side, Batch) if one.kind == "plain") == calls
    return drew


def test_both_sides_calls_go_on_once_a_case_where_energy_is_asked_for() -> None:
    assert min(draws(BASELINE, CANDIDATE, RIVAL, energy_s=DRAWN_S).values()) > 50
    assert draws(BASELINE, CANDIDATE, energy_s=0.0) == {}


class Counting(Pool):
    """A device with an energy counter."""

    def __init__(self, points: list[Point], *, energy_j: float | None = 1000.0) -> None:
        super().__init__()

        async def state(_own: object = None) -> DeviceState:
            return DeviceState(product="X", energy_j=energy_j)

        async def end() -> Watched:
            self.watch.words.append("end")
            return Watched(Window(source="nvml", seconds=3.0), tuple(points))

        self.watch.state, self.watch.end = state, end  # type: ignore[method-assign]


async def told(pool: Pool, effort: object) -> tuple[list[float], object]:
    """What the clock was asked for, and what is said."""
    heard: list[float] = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        measure = await clock.started()
        heard.append(measure.energy_s)
        found = list(times(baseline=1.0, candidate=0.5))
        if measure.energy_s:
            found[0] = msgspec.structs.replace(found[0], drawn=Drawn(0.2, 1.4, 1200))
            found[1] = msgspec.structs.replace(found[1], drawn=Drawn(1.5, 2.7, 2400))
        await clock.tell(Measured(times=tuple(found), floor=None))

    return heard, await timed(script, pool, effort=effort)


@pytest.mark.asyncio
async def test_the_latency_has_the_energy_of_both_sides_and_says_of_what() -> None:
    heard, timing = await told(Counting(counted(500.0)), WITH_ENERGY)
    assert heard == [DRAWN_S]
    (one,) = timing.latency  # type: ignore[attr-defined]
    assert one.baseline.energy_mj == pytest.approx(500.0, rel=0.05)
    assert one.candidate.energy_mj == pytest.approx(250.0, rel=0.05)
    candidate, _, baseline = energy_words(one).partition(" / ")
    assert (float(candidate), float(baseline)) == (pytest.approx(250, rel=0.05), pytest.approx(500, rel=0.05))
    page = plain_timing(msgspec.structs.replace(correct(speedup=2.0), latency=(one,)))
    assert "plain calls back to back" in " ".join(page.split())


@pytest.mark.asyncio
async def test_a_case_whose_energy_was_not_measured_is_named() -> None:
    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        await clock.started()
        await clock.tell(Measured(times=tuple(times(baseline=1.0, candidate=0.5)), floor=None))

    timing = await timed(script, Counting(counted(500.0)), effort=WITH_ENERGY)
    (one,) = timing.latency
    assert one.candidate is not None
    assert one.candidate.energy_mj is None
    assert any("not measured" in note and one.case in note for note in timing.notes)
