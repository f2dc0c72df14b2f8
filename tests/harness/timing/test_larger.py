"""Protects the second measurement at a larger size, for times that the hardware cannot reach."""

from __future__ import annotations

import pytest

from harness.hardware.product_tables import find_product
from harness.hardware.recognition import Recognised
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.larger_sizes import BEYOND_HARDWARE, TIMES, enlarge_case
from harness.stages.verdicts import conclude
from harness.wire.messages.clock import BASELINE, CANDIDATE, Measure, Measured
from harness.wire.results.evaluation import ErrorReport, Verdict
from suites import load_task
from tests.support.timing.process_times import TASK, times
from tests.support.timing.scripted_clock import Pool, ScriptedClock, measure_with
from tests.support.waiting import await_until

H200 = find_product("H200 SXM")
SIZE = next(case for case in TASK.open_cases if case.name == "fp32").gpu["n"]


@pytest.mark.parametrize(
    ("task", "case", "axis"),
    [("vector_add", "fp32", "n"), ("softmax", "fp32", "rows"), ("matmul", "square", "m")],
)
def test_larger_case_multiplies_leading_axis_and_has_new_name(task: str, case: str, axis: str) -> None:
    original = next(entry for entry in load_task(task).cases if entry.name == case)
    result = enlarge_case(load_task(task), original)
    assert result.of == case
    assert result.case.gpu == result.case.cpu == original.gpu | {axis: TIMES * original.gpu[axis]}
    assert result.case.name != case
    assert result.words == f"{axis} {TIMES * original.gpu[axis]} instead of {original.gpu[axis]}"


@pytest.fixture(autouse=True)
def _recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.stages.timing.performance.product_of", lambda _: Recognised(H200, ""))


class TwoMeasurements:
    """A clock's script that answers up to two measurements; `requests` holds what the engine asked."""

    def __init__(self, first: float, *, again: Measured | None = None, case: str = "fp32") -> None:
        self.requests: list[Measure] = []
        self._first, self._again, self._case = first, again, case

    async def __call__(self, clock: ScriptedClock, _pool: Pool) -> None:
        self.requests.append(await clock.reach_lease())
        await clock.send(Measured(times=times(self._case, baseline=1.0, candidate=self._first), floor=None))
        self.requests.append(await clock.reach_lease())
        await clock.send(self._again)


def measured(ms: float) -> Measured:
    return Measured(times=times(f"fp32-x{TIMES}", baseline=2.0, candidate=ms), floor=None)


async def measure(script: TwoMeasurements, pool: Pool | None = None) -> Timing:
    return await measure_with(script, pool or Pool())


async def test_plausible_time_is_measured_once() -> None:
    script = TwoMeasurements(0.5)
    timing = await measure(script)
    assert (len(script.requests), conclude(timing.error), len(timing.latency)) == (1, Verdict.CORRECT, 1)


async def test_impossible_time_at_larger_size_is_refused() -> None:
    script, pool = TwoMeasurements(0.01, again=measured(0.02)), Pool()
    timing = await measure(script, pool)
    assert (conclude(timing.error), timing.latency, timing.ok) == (Verdict.REJECTED, (), False)
    assert timing.error.kind == BEYOND_HARDWARE
    assert f"n {TIMES * SIZE} instead of {SIZE}" in timing.error.message
    assert "needs at least" in timing.error.message
    assert "\n" not in timing.error.message
    first, again = script.requests
    assert set(first.sources) == set(again.sources) == {BASELINE, CANDIDATE}
    assert [case.gpu for case in again.task.open_cases] == [{"n": TIMES * SIZE}]
    assert (again.flush_bytes, again.cold, again.seed) == (first.flush_bytes, first.cold, first.seed)
    await await_until(lambda: not pool.server.alive, "the end of all timers")
    assert pool.watch.windows == 2


async def test_plausible_time_at_larger_size_keeps_suspect_latency_with_note() -> None:
    timing = await measure(TwoMeasurements(0.01, again=measured(1.0)))
    assert (conclude(timing.error), len(timing.latency)) == (Verdict.CORRECT, 1)
    assert timing.latency[0].case == "fp32"
    assert timing.latency[0].efficiency.suspect
    assert any("1 ms is within what the hardware can do" in note for note in timing.notes)


async def test_wrong_output_at_larger_size_is_wrong() -> None:
    wrong = ErrorReport(kind="mismatch", message="output out is wrong at [5]")
    again = Measured(times=(), floor=None, error=wrong)
    timing = await measure(TwoMeasurements(0.01, again=again))
    assert (conclude(timing.error), timing.latency) == (Verdict.WRONG, ())
    assert timing.error.message.startswith(
        f"measured again at several times the size (fp32 at n {TIMES * SIZE} instead of {SIZE}): output out is wrong"
    )
