"""Rungs' estimates: what the clock spends on one, what is said of its samples, and what stays out of it."""

from __future__ import annotations

from collections import Counter
from typing import cast

import msgspec
import pytest

from harness.stages.timing.rough_estimates import roughly_concluded
from harness.wire.clock_messages import BASELINE, CANDIDATE, Measured
from harness.wire.effort import ROUGH
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.guest_messages import OutputData, Returned
from harness.wire.timer_messages import Batch, Fetch, Record

from .fake_timers import FakeTimer, bench
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


def test_why_nothing_was_estimated_is_said() -> None:
    timing = roughly_concluded(GPU, ROUGHLY, Measured((), None, problem="out of memory"), Counter())
    assert (timing.detail, timing.ok) == ("not estimated: out of memory", None)
    nothing = roughly_concluded(GPU, ROUGHLY, Measured((), None), Counter({("fp32", CANDIDATE): 0}))
    assert nothing.detail == "not estimated: no case was measured"
    wrong = Measured((), None, verdict="rejected", error=ErrorReport(kind="tampering", message="patched"))
    assert roughly_concluded(GPU, ROUGHLY, wrong, Counter()).verdict is Verdict.REJECTED
