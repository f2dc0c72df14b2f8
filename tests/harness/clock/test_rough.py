"""Protects rough estimates of a tuning rung: few samples, output checks, and no latency in the result."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from harness.stages.timing.rough_estimates import conclude_roughly
from harness.stages.verdicts import conclude
from harness.wire.messages.clock import BASELINE, CANDIDATE, ROUGH, Measured
from harness.wire.messages.timer import Batch, Fetch
from harness.wire.results.evaluation import ErrorReport, Verdict
from tests.support.timing.fake_timers import bench, changed, on
from tests.support.timing.process_times import GPU, MEASURE, times

ROUGHLY = msgspec.structs.replace(MEASURE, effort=ROUGH[0])


def test_rung_takes_few_samples_without_batches() -> None:
    on_bench = bench("fp32")
    measured = on_bench.measure(effort=ROUGH[0])
    assert not on_bench.requests(CANDIDATE, Batch)
    assert {process.side for process in measured.times} == {BASELINE, CANDIDATE}
    assert on_bench.requests(CANDIDATE, Fetch), "outputs are compared in a rung, too"
    assert measured.confirmed_outputs > 0


def test_wrong_variant_is_wrong_in_a_rung() -> None:
    zeros = on(Fetch, changed(data=lambda data: bytes(len(data))))
    on_bench = bench("fp32", behaviours={CANDIDATE: zeros})
    measured = on_bench.measure(effort=ROUGH[0])
    assert conclude(measured.error) == "wrong"
    timing = conclude_roughly(GPU, ROUGHLY, measured, Counter())
    assert (conclude(timing.error), timing.rough) == (Verdict.WRONG, ())


def test_estimate_is_ratio_of_medians_and_no_latency() -> None:
    measured = Measured(times=times(pairs=2, baseline=1.0, candidate=0.8), floor=None)
    timing = conclude_roughly(GPU, ROUGHLY, measured, Counter())
    assert timing.latency == ()
    (estimate,) = timing.rough
    assert (estimate.case, estimate.device, estimate.pairs, estimate.samples, estimate.against) == (
        "fp32",
        "0",
        2,
        20,
        "triton",
    )
    assert estimate.ratio == pytest.approx(1.25)
    assert "no latency" in timing.detail
    assert timing.ok


def test_missing_estimate_has_a_reason() -> None:
    timing = conclude_roughly(GPU, ROUGHLY, Measured((), None, problem="out of memory"), Counter())
    assert (timing.detail, timing.ok) == ("not estimated: out of memory", None)
    nothing = conclude_roughly(GPU, ROUGHLY, Measured((), None), Counter({("fp32", CANDIDATE): 0}))
    assert nothing.detail == "not estimated: no case was measured"
    wrong = Measured((), None, error=ErrorReport(kind="tampering", message="patched"))
    assert conclude(conclude_roughly(GPU, ROUGHLY, wrong, Counter()).error) is Verdict.REJECTED
