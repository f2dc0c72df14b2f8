"""Protects the clock's blame if a fake timer fails, lies or hangs: on candidate, baseline, device or engine."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from harness.stages.verdicts import conclude
from harness.wire.channels.channel import ChannelClosed
from harness.wire.messages.clock import BASELINE, CANDIDATE
from harness.wire.messages.guest import GPU_FAULT, OUT_OF_MEMORY, Ask, LeftBehind, Load, Loaded
from harness.wire.messages.requests import WorkerAnswer
from harness.wire.messages.timer import Batch, Done, Fetch, Prepare, Prepared, Renew, TakeSample
from harness.wire.results.evaluation import Verdict
from harness.worker.clock.case_inputs import CaseInputs
from tests.support.timing.fake_timers import (
    Dies,
    FakeSeat,
    bench,
    dies,
    no_descriptor_is_left,
    on,
    raises,
    silent,
)

__all__ = ["no_descriptor_is_left"]


@pytest.mark.parametrize("when", [Load, Prepare, TakeSample, Batch, Renew, Fetch, Ask.RECORD, Ask.FAREWELL])
def test_dead_candidate_timer_is_a_crash(when: type[Any] | Ask) -> None:
    measured = bench(behaviours={CANDIDATE: on(when, dies)}).measure()
    assert (conclude(measured.error), measured.ended) == (Verdict.CRASH, CANDIDATE)
    assert measured.error is not None
    assert ("the import" if when is Load else "fp32") in measured.error.message


@pytest.mark.parametrize("when", [Load, Prepare, TakeSample, Batch, Renew, Fetch, Ask.RECORD])
def test_exception_while_timed_is_a_call_error_with_line(when: type[Any] | Ask) -> None:
    measured = bench(behaviours={CANDIDATE: on(when, raises())}).measure()
    assert measured.error is not None
    assert (conclude(measured.error), measured.error.line) == (Verdict.CALL_ERROR, 3)
    assert measured.error.trace == "line 3"
    assert "boom" in measured.error.message
    assert ("the import" if when is Load else "case fp32") in measured.error.message


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        (GPU_FAULT, Verdict.CRASH),
        *(
            (kind, Verdict.REJECTED) for kind in ("unsupported", "infra", "cancelled")
        ),  # no timer reports them
    ],
)
def test_verdict_follows_from_the_kind_of_failure(kind: str, verdict: Verdict) -> None:
    assert conclude(bench(behaviours={CANDIDATE: on(TakeSample, raises(kind))}).measure().error) is verdict


def test_full_device_does_not_blame_candidate() -> None:
    measured = bench(behaviours={CANDIDATE: on(Prepare, raises(OUT_OF_MEMORY))}).measure()
    assert measured.error is None
    assert "case fp32: the candidate could not be timed: boom" in measured.problem


@pytest.mark.parametrize(
    ("request_kind", "answer_kind"), [(Load, Loaded), (Prepare, Prepared), (TakeSample, Done)]
)
def test_silent_candidate_is_a_timeout(request_kind: type[Any], answer_kind: type[Any]) -> None:
    measured = bench(
        behaviours={CANDIDATE: on(request_kind, silent)}, answer_limits_s={answer_kind.__name__: 0.05}
    ).measure()
    assert conclude(measured.error) is Verdict.TIMEOUT


@pytest.mark.parametrize("when", [Load, Prepare, TakeSample])
@pytest.mark.parametrize("failure", [dies, raises()], ids=["dies", "raises"])
def test_failure_of_baseline_never_blames_candidate(when: type[Any] | Ask, failure: Any) -> None:
    measured = bench(behaviours={BASELINE: on(when, failure)}).measure()
    assert measured.error is None
    assert "the baseline could not be timed" in measured.problem
    assert measured.times == ()


def test_baseline_outputs_are_not_compared() -> None:
    measured = bench(behaviours={BASELINE: on(Fetch, dies)}).measure()
    assert (measured.error, measured.problem) == (None, "")


@pytest.mark.parametrize(
    ("traces", "says"),
    [
        (LeftBehind(patched=("torch.sum",), threads=0, children=0), "torch.sum"),
        (
            LeftBehind((), 0, 0, foreign_kernels=("`k` of ops.sibling",)),
            "timed: the kernel `k` of ops.sibling was",
        ),
    ],
    ids=["patch", "foreign-kernel"],
)
def test_patch_or_foreign_kernel_rejects_candidate_but_not_baseline(traces: LeftBehind, says: str) -> None:
    def patched(_timer: FakeSeat, request: Ask) -> WorkerAnswer:
        return traces

    measured = bench(behaviours={CANDIDATE: on(Ask.FAREWELL, patched)}).measure()
    assert conclude(measured.error) is Verdict.REJECTED
    assert measured.error is not None
    assert says in measured.error.message
    assert bench(behaviours={BASELINE: on(Ask.FAREWELL, patched)}).measure().error is None


def test_times_before_a_problem_are_kept() -> None:
    def dies_in_second_case(timer: FakeSeat, _request: TakeSample) -> WorkerAnswer | None:
        if timer.case == "fp32-ragged":
            raise Dies
        return None

    measured = bench(
        "fp32", "fp32-ragged", behaviours={BASELINE: on(TakeSample, dies_in_second_case)}
    ).measure()
    assert {process.case for process in measured.times} == {"fp32"}
    assert "fp32-ragged" in measured.problem


PARAGRAPH = (
    "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.25 GiB is free. "
    "Process 41 has 105.00 GiB memory in use. Including non-PyTorch memory, this process has 1.00 GiB memory in use. Of the "
    "allocated memory 1.00 GiB is allocated by PyTorch. If reserved but unallocated memory is large try setting "
    "PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management"
)
FIRST_SENTENCES = "CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 5.25 GiB is free."


def test_out_of_memory_in_judge_names_case_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError(PARAGRAPH)

    monkeypatch.setattr(CaseInputs, "values", full)
    assert bench("fp32").measure().problem == f"case fp32: {FIRST_SENTENCES}"


@pytest.mark.parametrize("alive_calls", [1, 6, 12, 18])
def test_lost_engine_ends_clock_and_timers(alive_calls: int) -> None:
    on_bench = bench(gone_at=alive_calls)
    with pytest.raises(ChannelClosed):
        on_bench.measure()
    assert on_bench.engine_calls.count("alive") == alive_calls
