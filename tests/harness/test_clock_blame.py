"""The clock over simulated timers that fail, lie or hang: on whom blame falls, and what is left behind."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.wire.channel import ChannelClosed
from harness.wire.clock_messages import BASELINE, CANDIDATE, RIVAL, TAPE
from harness.wire.evaluation import Verdict
from harness.wire.guest_messages import GPU_FAULT, OUT_OF_MEMORY, Farewell, LeftBehind, Load, Loaded
from harness.wire.timer_messages import (
    Batch,
    Fetch,
    Prepare,
    Prepared,
    Record,
    Renew,
    Sample,
    Sampled,
    TimerReport,
)
from harness.worker.clock.case_inputs import CaseInputs

from .fake_timers import Bench, Dies, FakeTimer, bench, dies, no_descriptor_is_left, on, raises, silent, small

__all__ = ["no_descriptor_is_left"]


@pytest.mark.parametrize("when", [Load, Prepare, Sample, Batch, Renew, Fetch, Record, Farewell])
def test_a_candidates_timer_that_dies_is_its_crash(when: type[Any]) -> None:
    measured = bench(behaviours={CANDIDATE: on(when, dies)}).measure()
    assert measured.verdict == Verdict.CRASH
    assert measured.error is not None
    assert ("the import" if when is Load else "fp32") in measured.error.message


@pytest.mark.parametrize("when", [Load, Prepare, Sample, Batch, Renew, Fetch, Record])
def test_a_candidate_that_raises_while_it_is_timed_is_a_call_error_with_its_line(when: type[Any]) -> None:
    measured = bench(behaviours={CANDIDATE: on(when, raises())}).measure()
    assert measured.verdict == Verdict.CALL_ERROR
    assert measured.error is not None
    assert (measured.error.line, measured.error.trace) == (3, "line 3")
    assert "boom" in measured.error.message
    assert ("the import" if when is Load else "case fp32") in measured.error.message


def test_a_fault_on_the_device_is_a_crash() -> None:
    assert bench(behaviours={CANDIDATE: on(Sample, raises(GPU_FAULT))}).measure().verdict == Verdict.CRASH


def test_a_device_that_is_full_is_not_the_candidates_fault() -> None:
    measured = bench(behaviours={CANDIDATE: on(Prepare, raises(OUT_OF_MEMORY))}).measure()
    assert measured.verdict == ""
    assert "case fp32: the candidate could not be timed: boom" in measured.problem


@pytest.mark.parametrize(("asked", "answer"), [(Load, Loaded), (Prepare, Prepared), (Sample, Sampled)])
def test_a_silent_candidate_is_a_timeout_and_nobody_waits_longer(asked: type[Any], answer: type[Any]) -> None:
    measured = bench(behaviours={CANDIDATE: on(asked, silent)}, shorter={answer.__name__: 0.05}).measure()
    assert measured.verdict == Verdict.TIMEOUT


@pytest.mark.parametrize("side", [BASELINE, RIVAL])
@pytest.mark.parametrize("when", [Load, Prepare, Sample])
@pytest.mark.parametrize("failure", [dies, raises()], ids=["dies", "raises"])
def test_what_another_side_does_is_a_problem_and_never_the_candidates(
    side: str, when: type[Any], failure: Any
) -> None:
    on_bench = Bench(small(), {BASELINE: 1.0, CANDIDATE: 0.5, RIVAL: 0.6})
    on_bench.behaviours[side] = on(when, failure)
    measured = on_bench.measure()
    assert (measured.verdict, measured.error) == ("", None)
    assert f"the {side} could not be timed" in measured.problem
    timed = {(one.side, one.case) for one in measured.times} - {(TAPE, one.case) for one in measured.times}
    both = {(one, case.name) for one in (BASELINE, CANDIDATE) for case in small().open_cases}
    assert timed == (both if side == RIVAL else set()), "without its rival a candidate is timed all the same"


def test_a_wrong_baseline_is_not_looked_at_and_blames_nobody() -> None:
    measured = bench(behaviours={BASELINE: on(Fetch, dies)}).measure()
    assert (measured.verdict, measured.problem) == ("", "")


def test_patches_told_at_farewell_reject_a_candidate_and_no_baseline() -> None:
    def patched(_timer: FakeTimer, request: Farewell) -> TimerReport:
        return LeftBehind(nonce=request.nonce, patched=("torch.sum",), threads=0, children=0)

    measured = bench(behaviours={CANDIDATE: on(Farewell, patched)}).measure()
    assert measured.verdict == Verdict.REJECTED
    assert measured.error is not None
    assert "torch.sum" in measured.error.message
    assert bench(behaviours={BASELINE: on(Farewell, patched)}).measure().verdict == ""


def test_what_was_timed_before_a_problem_is_kept() -> None:
    def second(timer: FakeTimer, _request: Sample) -> TimerReport | None:
        if timer.case == "fp32-ragged":
            raise Dies
        return None

    measured = bench("fp32", "fp32-ragged", behaviours={BASELINE: on(Sample, second)}).measure()
    assert {one.case for one in measured.times} == {"fp32"}
    assert "fp32-ragged" in measured.problem


PARAGRAPH = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.25 GiB is free. "
    "Process 41 has 105.00 GiB memory in use. Including non-PyTorch memory, this process has 1.00 GiB memory in use. Of the "
    "allocated memory 1.00 GiB is allocated by PyTorch. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management"
)
IN_SHORT = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.25 GiB is free."


def test_a_device_that_is_full_for_the_judge_itself_is_said_as_short_and_with_the_case(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError(PARAGRAPH)

    monkeypatch.setattr(CaseInputs, "given", full)
    assert bench("fp32").measure().problem == f"case fp32: {IN_SHORT}"


@pytest.mark.parametrize("words", [1, 6, 12, 18])
def test_an_engine_that_goes_away_ends_it_and_all_timers(words: int) -> None:
    on_bench = bench(leaves_at=words)
    with pytest.raises(ChannelClosed):
        on_bench.measure()
    assert on_bench.asked.count("alive") == words
