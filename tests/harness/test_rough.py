"""Rungs' estimates: what the clock spends on one, what is said of its samples, and what stays out of it."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import cast

import msgspec
import pytest

from harness.effort import ROUGH, WHOLE
from harness.evaluation import ErrorReport, Verdict
from harness.rough import estimated_ratio, roughly_concluded
from harness.worker.serving.messages import OutputData, Returned
from harness.worker.timing.messages import (
    BASELINE,
    CANDIDATE,
    Batch,
    Fetch,
    Floor,
    Measured,
    Record,
)

from .fake_timers import FakeTimer, bench
from .scripted_clock import Pool, ScriptedClock, timed
from .timings import GPU, MEASURE, times

ROUGHLY = msgspec.structs.replace(MEASURE, effort=ROUGH[0])


def test_a_rung_takes_few_samples_and_neither_watch_nor_tape() -> None:
    found = bench("fp32")
    measured = found.measure(effort=ROUGH[0])
    assert found.asked[0] == "timers baseline,candidate x1 instead"
    assert found.asked.count("lease") == 1
    assert not found.met(CANDIDATE, Batch)
    assert not found.met(CANDIDATE, Record)
    assert {one.side for one in measured.times} == {BASELINE, CANDIDATE}
    assert found.met(CANDIDATE, Fetch), "outputs are looked at all the same"
    assert measured.confirmed_outputs > 0


def test_each_rung_takes_several_times_the_samples_of_the_one_before() -> None:
    first, second, whole = (
        # Blocks, as how many samples each has depends on how busy the machine is.
        sum(
            len(one.blocks)
            for one in bench("fp32", noise=0.05).measure(effort=effort).times
            if one.side == CANDIDATE
        )
        for effort in (*ROUGH, WHOLE)
    )
    assert 4 * first <= second < whole


def test_a_variant_that_is_wrong_in_a_call_is_wrong_in_a_rung() -> None:
    def wrong(timer: FakeTimer, request: object) -> Returned | None:
        if not isinstance(request, Fetch):
            return None
        returned = cast(Returned, timer.usual(request))
        outputs = tuple(
            OutputData(**{**msgspec.structs.asdict(one), "data": bytes(len(one.data or b""))})
            for one in returned.outputs
        )
        return msgspec.structs.replace(returned, outputs=outputs)

    found = bench("fp32", behaviours={CANDIDATE: wrong})
    measured = found.measure(effort=ROUGH[0])
    assert measured.verdict == "wrong"
    timing = roughly_concluded(GPU, ROUGHLY, measured, Counter())
    assert (timing.verdict, timing.rough) == (Verdict.WRONG, ())


def test_an_estimate_is_the_ratio_of_medians_over_pairs_and_no_latency() -> None:
    found = Measured(times=times(pairs=2, baseline=1.0, candidate=0.8), floor=None)
    timing = roughly_concluded(GPU, ROUGHLY, found, Counter())
    assert timing.latency == ()
    (one,) = timing.rough
    assert (one.case, one.device, one.pairs, one.samples, one.against) == ("fp32", "0", 2, 20, "triton")
    assert one.ratio == pytest.approx(1.25)
    assert "no latency" in timing.detail
    assert timing.ok


def test_a_single_pair_is_enough_and_an_unfinished_case_is_left_out() -> None:
    ragged = [one for one in times("fp32-ragged", baseline=1.0, candidate=0.5) if one.side == BASELINE]
    found = Measured(times=(*times(pairs=1, baseline=1.0, candidate=0.5), *ragged), floor=None)
    timing = roughly_concluded(GPU, ROUGHLY, found, Counter())
    assert [(one.case, one.ratio) for one in timing.rough] == [("fp32", pytest.approx(2.0))]


def test_below_five_floors_there_is_no_ratio_to_rank_by() -> None:
    found = Measured(
        times=(
            *times(baseline=0.02, candidate=0.009),
            *times("fp32-ragged", baseline=1.0, candidate=0.5),
        ),
        floor=Floor(empty_ms=0.002, copies=()),
    )
    rough = roughly_concluded(GPU, ROUGHLY, found, Counter()).rough
    assert [one.ratio for one in rough] == [None, pytest.approx(2.0)]
    short, ragged = (
        next(case for case in MEASURE.task.cases if case.name == name) for name in ("fp32", "fp32-ragged")
    )
    assert estimated_ratio(rough, (short, ragged)) == pytest.approx(2.0)
    assert estimated_ratio(rough[:1], (short,)) is None
    both = (msgspec.structs.replace(rough[0], ratio=0.5), rough[1])
    assert estimated_ratio(both, (short, ragged)) == pytest.approx(statistics.geometric_mean([0.5, 2.0]))


def test_the_estimate_of_some_cases_is_not_the_tasks() -> None:
    found = Measured(times=times(pairs=1, baseline=1.0, candidate=0.5), floor=None, problem="full")
    timing = roughly_concluded(GPU, ROUGHLY, found, Counter())
    assert [one.ratio for one in timing.rough] == [pytest.approx(2.0)]
    assert estimated_ratio(timing.rough, MEASURE.task.open_cases) is None
    assert timing.notes == ("the estimate is not whole: full",)
    found = msgspec.structs.replace(found, problem="")
    timing = roughly_concluded(
        GPU, ROUGHLY, found, Counter({("fp32", BASELINE): 5, ("fp16-ragged", BASELINE): 3})
    )
    assert [note.partition(" samples")[0] for note in timing.notes] == ["the estimate is not whole: 3"]


def test_why_nothing_was_estimated_is_said() -> None:
    timing = roughly_concluded(GPU, ROUGHLY, Measured((), None, problem="out of memory"), Counter())
    assert (timing.detail, timing.ok) == ("not estimated: out of memory", None)
    nothing = roughly_concluded(GPU, ROUGHLY, Measured((), None), Counter({("fp32", CANDIDATE): 0}))
    assert nothing.detail == "not estimated: no case was measured"
    wrong = Measured((), None, verdict="rejected", error=ErrorReport(kind="tampering", message="patched"))
    assert roughly_concluded(GPU, ROUGHLY, wrong, Counter()).verdict is Verdict.REJECTED


@pytest.mark.asyncio
async def test_the_clock_is_told_how_much_a_rung_may_cost() -> None:
    heard = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        heard.append(await clock.started())
        await clock.tell(Measured(times=times(baseline=1.0, candidate=0.001), floor=None))

    timing = await timed(script, Pool(), effort=ROUGH[0])
    assert (heard[0].effort, heard[0].budget_s) == (ROUGH[0], ROUGH[0].budget_s)
    assert (timing.latency, len(timing.rough)) == ((), 1)
