"""A time that beats the hardware is taken again at several times the size, and refused where it still does."""

from __future__ import annotations

import pytest

from harness.hardware.product_tables import find_product
from harness.hardware.recognition import Recognised
from harness.stages.timing.conclusions import Timing
from harness.stages.timing.larger_sizes import BEYOND_HARDWARE, TIMES, Larger, larger
from harness.wire.clock_messages import BASELINE, CANDIDATE, RIVAL, Measure, Measured
from harness.wire.evaluation import ErrorReport, Verdict
from suites import load_task
from suites.task import Case, Task

from .scripted_clock import Pool, ScriptedClock, timed
from .timings import TASK, times

H200 = find_product("H200 SXM")
SIZE = next(case for case in TASK.open_cases if case.name == "fp32").gpu["n"]


def case_of(task: Task, name: str) -> Case:
    return next(case for case in task.cases if case.name == name)


@pytest.mark.parametrize(
    ("task", "case", "axis"),
    [("vector_add", "fp32", "n"), ("softmax", "fp32", "rows"), ("matmul", "square", "m")],
)
def test_the_leading_size_is_multiplied_and_the_case_has_a_name_of_its_own(
    task: str, case: str, axis: str
) -> None:
    of = case_of(load_task(task), case)
    found = larger(load_task(task), of)
    assert isinstance(found, Larger)
    assert found.of == case
    assert found.case.gpu == found.case.cpu == of.gpu | {axis: TIMES * of.gpu[axis]}
    assert found.case.name != case
    assert found.words == f"{axis} {TIMES * of.gpu[axis]} instead of {of.gpu[axis]}"


@pytest.fixture(autouse=True)
def _recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.stages.timing.performance.product_of", lambda _: Recognised(H200, ""))


class Twice:
    """A clock that says these times, and where it is asked again those; `heard` is what it was asked."""

    def __init__(self, first: float, *, again: Measured | None = None, case: str = "fp32") -> None:
        self.heard: list[Measure] = []
        self._first, self._again, self._case = first, again, case

    async def __call__(self, clock: ScriptedClock, _pool: Pool) -> None:
        self.heard.append(await clock.started())
        await clock.tell(Measured(times=times(self._case, baseline=1.0, candidate=self._first), floor=None))
        self.heard.append(await clock.started())
        assert self._again is not None
        await clock.tell(self._again)


def measured(ms: float) -> Measured:
    return Measured(times=times(f"fp32-x{TIMES}", baseline=2.0, candidate=ms), floor=None)


async def judged(script: Twice, pool: Pool | None = None) -> Timing:
    return await timed(script, pool or Pool(), rival="x = 3")


@pytest.mark.asyncio
async def test_what_is_within_the_hardware_is_timed_once() -> None:
    script = Twice(0.5)
    timing = await judged(script)
    assert (len(script.heard), timing.verdict, len(timing.latency)) == (1, Verdict.CORRECT, 1)


@pytest.mark.asyncio
async def test_what_beats_the_hardware_at_several_times_the_size_is_refused() -> None:
    script, pool = Twice(0.01, again=measured(0.02)), Pool()
    timing = await judged(script, pool)
    assert (timing.verdict, timing.latency, timing.ok) == (Verdict.REJECTED, (), False)
    assert timing.error is not None
    assert timing.error.kind == BEYOND_HARDWARE
    assert f"n {TIMES * SIZE} instead of {SIZE}" in timing.error.message
    assert "needs at least" in timing.error.message
    assert "\n" not in timing.error.message
    first, again = script.heard
    assert set(first.sources) == {BASELINE, CANDIDATE, RIVAL}
    assert set(again.sources) == {BASELINE, CANDIDATE}, "by pairs, and nobody asks for the best so far"
    assert [case.gpu for case in again.task.open_cases] == [{"n": TIMES * SIZE}]
    assert (again.flush_bytes, again.cold, again.seed) == (first.flush_bytes, first.cold, first.seed)
    assert pool.server.alive == []
    assert pool.watch.words == ["begin", "end", "using", "begin", "end", "used"], "never without a lease"


@pytest.mark.asyncio
async def test_what_is_honest_at_several_times_the_size_stays_suspect_with_a_note() -> None:
    timing = await judged(Twice(0.01, again=measured(1.0)))
    assert (timing.verdict, len(timing.latency)) == (Verdict.CORRECT, 1)
    assert timing.latency[0].case == "fp32"
    assert timing.latency[0].efficiency is not None
    assert timing.latency[0].efficiency.suspect
    assert any("1 ms is within what the hardware can do" in note for note in timing.notes)


@pytest.mark.asyncio
async def test_what_is_wrong_at_several_times_the_size_is_wrong() -> None:
    wrong = ErrorReport(kind="mismatch", message="output out is wrong at [5]")
    again = Measured(times=(), floor=None, verdict="wrong", error=wrong)
    timing = await judged(Twice(0.01, again=again))
    assert (timing.verdict, timing.latency) == (Verdict.WRONG, ())
    assert timing.error is not None
    assert timing.error.message.startswith(
        f"measured again at several times the size (fp32 at n {TIMES * SIZE} instead of {SIZE}): output out is wrong"
    )
