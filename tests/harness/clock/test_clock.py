"""Protects the clock, over fake timers: recorded calls, number of rounds, output checks, refused times."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from harness.stages.verdicts import conclude
from harness.wire.messages.clock import BASELINE, CANDIDATE, ROUGH, SIDES, SUSTAINED, WHOLE, Effort, Floor
from harness.wire.messages.guest import Ask, Loaded
from harness.wire.messages.requests import WorkerAnswer, WorkerMessage
from harness.wire.messages.timer import (
    LEAST_IN_BLOCK,
    LEAST_LAUNCHES,
    MOST_LAUNCHES,
    Batch,
    BringBack,
    Fetch,
    Prepare,
    Prepared,
    Renew,
    Rung,
    TakeSample,
    count_launches,
)
from harness.wire.messages.timer import Done as DoneReport
from harness.wire.results.evaluation import Verdict
from harness.worker.kit.arena import storage_bytes
from harness.worker.oracle.problem import Problem
from tests.support.timing.fake_timers import (
    Bench,
    FakeSeat,
    bench,
    changed,
    no_descriptor_is_left,
    on,
    sides_and_pairs,
    small,
)

__all__ = ["no_descriptor_is_left"]


# Order of timers and number of rounds.


def test_every_case_is_timed_in_three_pairs_and_compared() -> None:
    on_bench = bench("fp32", "fp16-ragged")
    measured = on_bench.measure()
    assert (measured.error, measured.problem) == (None, "")
    assert sides_and_pairs(measured) == sorted(
        (case, side, pair)
        for case in ("fp32", "fp16-ragged")
        for side in (BASELINE, CANDIDATE)
        for pair in range(3)
    )
    assert measured.confirmed_outputs == 2 * LEAST_IN_BLOCK
    assert measured.not_shared != ""  # no driver here


def test_nothing_is_sampled_before_the_lease() -> None:
    on_bench = bench()
    seen: list[str] = []
    on_bench.at_lease = lambda: seen.extend(event.kind for event in on_bench.events)
    on_bench.measure()
    assert seen.count("Load") == 6
    assert seen.count("record") == 2
    assert not {"TakeSample", "Rung"} & set(seen)


class CountedProblem(Problem):
    """Counts the values that the clock computes; the fake timers compute theirs in other threads."""

    count = 0

    def given(self, *arguments: Any) -> Any:
        self.note()
        return super().given(*arguments)

    def oracle(self, *arguments: Any) -> Any:
        self.note()
        return super().oracle(*arguments)

    def note(self) -> None:
        self.count += threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("effort", [WHOLE, ROUGH[0]])
def test_values_and_right_outputs_are_computed_before_the_lease(effort: Effort) -> None:
    on_bench = bench("fp32", "fp32-ragged", tapes=SIDES)
    problem = on_bench.problem = CountedProblem(on_bench.task)
    before_lease: list[int] = []
    on_bench.at_lease = lambda: before_lease.append(problem.count)
    assert on_bench.measure(effort=effort).problem == ""
    assert before_lease == [problem.count]
    assert problem.count > 0


def test_only_one_timer_is_sampled_at_a_time() -> None:
    on_bench = bench(waits_for_overlap=True)
    on_bench.measure()
    assert on_bench.most_at_once == 1


def test_order_of_timers_is_drawn_in_each_round() -> None:
    on_bench = bench("fp32", "fp32-ragged", "fp16-ragged", noise=0.05, bias=0.0)
    on_bench.measure()
    counted = [event for event in on_bench.events if isinstance(event.request, TakeSample | Batch | Prepare)]
    rounds: list[tuple[str, ...]] = []
    blocks: list[str] = []
    for event in counted:
        if isinstance(event.request, TakeSample):
            blocks.append(event.seat.name)
        elif blocks:
            rounds += [
                tuple(blocks[start : start + 6])
                for start in range(6, len(blocks) - 5, 6)  # the first six find the size of a block
            ]
            blocks = []
    rounds = [order for order in rounds if len(set(order)) == 6]
    assert len(rounds) >= 9
    assert len(set(rounds)) > len(rounds) // 2  # 720 orders


@pytest.mark.parametrize(
    ("options", "limits", "blocks"),
    [
        ({"noise": 0.0}, {}, 3),
        ({"noise": 0.2}, {}, 15),
        ({"noise": 0.2, "bias": 0.1}, {"budget_s": 0.0}, 3),
        ({"noise": 0.2, "bias": 0.05}, {"floor": Floor(empty_ms=0.3, copies=())}, 1),
        ({"candidate": 0.003}, {}, 3),
    ],
    ids=["steady", "uncertain medians", "spent budget", "too short", "one short side"],
)
def test_rounds_of_each_case(options: dict[str, float], limits: dict[str, Any], blocks: int) -> None:
    measured = bench("fp32", "fp32-ragged", **options).measure(**limits)
    assert {(process.case, len(process.blocks)) for process in measured.times} == {
        ("fp32", blocks),
        ("fp32-ragged", blocks),
    }


def test_short_candidate_is_also_timed_by_wall_clock() -> None:
    measured = bench(baseline=0.004, candidate=0.003).measure()
    wall_ms = {process.side: process.wall_ms for process in measured.times if process.pair == 0}
    assert wall_ms[CANDIDATE] is not None
    assert wall_ms[BASELINE] is None


def test_first_process_config_is_passed_to_its_side() -> None:
    def tuned(timer: FakeSeat, request: Prepare) -> WorkerAnswer:
        chosen = request.chosen or {"kernel": f"BLOCK: {timer.number}"}
        return Prepared(call_ms=0.01, peak_bytes=0, configs={} if request.ahead else chosen)

    on_bench = bench(behaviours={CANDIDATE: on(Prepare, tuned)})
    measured = on_bench.measure(source="triton.autotune")
    configs = {process.pair: process.configs for process in measured.times if process.side == CANDIDATE}
    assert configs == {pair: {"kernel": "BLOCK: 1"} for pair in range(3)}
    assert all(not prepare.chosen for prepare in on_bench.requests(BASELINE, Prepare))


def test_autotuned_kernels_are_recorded_under_the_lease() -> None:
    on_bench = bench(tapes=SIDES)
    before: list[str] = []
    on_bench.at_lease = lambda: before.extend(event.kind for event in on_bench.events)
    measured = on_bench.measure(source="triton.autotune")
    assert "record" not in before
    assert len(on_bench.requests(CANDIDATE, Ask.RECORD)) == 1
    assert all(process.taped for process in measured.times)


# Graphs of many calls, for short kernels.


def test_short_calls_are_timed_in_graphs_on_both_sides() -> None:
    on_bench = bench("fp32", baseline=0.635, candidate=0.017, captures=True)
    measured = on_bench.measure()
    assert (measured.error, measured.problem, measured.why_method) == (None, "", {})
    assert len({process.launches for process in measured.times}) == 1, "both sides find the caches alike"
    assert measured.times[0].launches == int(20 / 0.635)
    for side in (BASELINE, CANDIDATE):
        assert len(on_bench.requests(side, Rung)) == 3
    median = measured.times[0].blocks[0].samples_ms[0]
    assert median == pytest.approx(on_bench.ms[measured.times[0].side], rel=0.05)
    assert measured.confirmed_outputs == max(
        process.launches for process in measured.times if process.side == CANDIDATE
    )


def test_long_calls_are_timed_between_events() -> None:
    on_bench = bench("fp32", baseline=0.635, candidate=0.3, captures=True)
    assert {process.launches for process in on_bench.measure().times} == {0}
    assert not on_bench.requests(CANDIDATE, Rung)


@pytest.mark.parametrize("side", [BASELINE, CANDIDATE])
def test_call_that_cannot_be_captured_is_timed_between_events_like_the_other_side(side: str) -> None:
    no_graph = on(Rung, lambda _timer, _request: DoneReport(problem="a size is read"))
    on_bench = bench("fp32", baseline=0.1, candidate=0.05, captures=True, behaviours={side: no_graph})
    measured = on_bench.measure()
    assert {process.launches for process in measured.times} == {0}
    assert measured.why_method == {"fp32": f"the {side} cannot be captured: a size is read"}
    samples = [*on_bench.requests(BASELINE, TakeSample), *on_bench.requests(CANDIDATE, TakeSample)]
    assert not any(sample.replays for sample in samples)


@pytest.mark.parametrize(
    ("call_ms", "arena_bytes", "launches"),
    [
        (0.02, 1 << 20, 128),  # as many as empty the caches
        (0.02, 1 << 28, 16),  # as many as memory holds
        (0.002, 1 << 12, MOST_LAUNCHES),  # the caches hold all copies
        (0.5, 1 << 12, LEAST_LAUNCHES),
        (0.1, 1 << 31, 0),
    ],
)
def test_graph_holds_as_many_calls_as_time_caches_and_memory_allow(
    call_ms: float, arena_bytes: int, launches: int
) -> None:
    rotate_bytes, most_bytes = 128 << 20, 4 << 30
    assert count_launches(call_ms, arena_bytes, arena_bytes, rotate_bytes, most_bytes) == launches


def test_inputs_that_fit_the_caches_are_said_to_be_hot() -> None:
    on_bench = bench("fp32", baseline=0.02, candidate=0.017, captures=True)  # inputs of 2056 bytes
    assert {process.cold for process in on_bench.measure(flush_bytes=256 * 2056).times} == {True}
    assert {process.cold for process in on_bench.measure(flush_bytes=1 << 20).times} == {False}


def test_sustained_time_of_each_side_follows_a_batch_of_the_same_calls() -> None:
    on_bench = bench("fp32")
    measured = on_bench.measure(effort=SUSTAINED)
    sustained = {process.side: process.sustained_ms for process in measured.times if process.sustained_ms}
    assert set(sustained) == {BASELINE, CANDIDATE}
    for side in SIDES:
        plain = [batch.count for batch in on_bench.requests(side, Batch) if batch.kind == "plain"]
        assert plain[-1] == plain[-2] > LEAST_IN_BLOCK


@pytest.mark.parametrize(
    ("effort", "baseline_ms"), [(WHOLE, 1.0), (SUSTAINED, 0.0005)], ids=["not asked for", "too short"]
)
def test_case_has_no_sustained_time(effort: Effort, baseline_ms: float) -> None:
    measured = bench(baseline=baseline_ms, candidate=baseline_ms / 2).measure(effort=effort)
    assert measured.times
    assert {process.sustained_ms for process in measured.times} == {None}


# Outputs and inputs.


def test_renewed_inputs_are_new_to_the_timer() -> None:
    on_bench = bench()
    seen: dict[str, list[list[bytes]]] = {CANDIDATE: []}

    def note(timer: FakeSeat, _request: Any) -> None:
        seen[CANDIDATE].append(list(timer.input_sets))

    on_bench.behaviours[CANDIDATE] = on(Prepare | Renew, note)  # type: ignore[arg-type]
    on_bench.measure()
    *before, renewed = seen[CANDIDATE]
    assert len(renewed) == 1
    earlier = {arena for input_sets in before for arena in input_sets}
    assert len(earlier) == 2  # two sets of values, the same for all timers
    assert renewed[0] not in earlier


def test_outputs_of_earlier_inputs_are_wrong() -> None:
    first_inputs: dict[str, bytes] = {}

    def stale(timer: FakeSeat, request: Any) -> WorkerAnswer | None:
        if isinstance(request, Prepare) and timer.input_sets:
            first_inputs[timer.name] = timer.input_sets[0]
        return timer.returned(request, first_inputs[timer.name]) if isinstance(request, Fetch) else None

    measured = bench(behaviours={CANDIDATE: stale}).measure()
    assert conclude(measured.error) is Verdict.WRONG
    assert measured.error is not None
    assert "in a call that was timed" in measured.error.message
    assert measured.confirmed_outputs == 0


@pytest.mark.parametrize(
    ("changes", "verdict", "words"),
    [
        ({"dtype": "float64", "data": lambda data: data * 2}, Verdict.REJECTED, "float64"),
        ({"dtype": "int32"}, Verdict.REJECTED, "int32"),
        ({"dtype": "complex1"}, Verdict.REJECTED, "complex1"),
        ({"data": lambda data: data[:-4]}, Verdict.REJECTED, "bytes"),
        ({"data": b""}, Verdict.REJECTED, "bytes"),
        ({"data": lambda data: data + data}, Verdict.REJECTED, "bytes"),
        ({"shape": (1, 257)}, Verdict.WRONG, "shape"),
        ({"shape": (256,)}, Verdict.WRONG, "shape"),
        ({"shape": (-257, -1)}, Verdict.WRONG, "shape"),
        ({"dtype": ""}, Verdict.WRONG, "not a tensor"),
        ({"problem": "is sparse"}, Verdict.WRONG, "sparse"),
        ({"data": lambda data: bytes(len(data))}, Verdict.WRONG, "in a call that was timed"),
        ({"aliases": "the output of another call"}, Verdict.REJECTED, "in a call that was timed"),
        ({"data": lambda data: storage_bytes(torch.full((len(data) // 4,), math.nan))}, Verdict.WRONG, "NaN"),
    ],
)
def test_wrong_output_of_a_call_or_of_a_graph_blames_candidate(
    changes: dict[str, Any], verdict: Verdict, words: str
) -> None:
    behaviours = {CANDIDATE: on(Fetch, changed(**changes))}
    for call in ({}, {"baseline": 0.1, "candidate": 0.05, "captures": True}):
        measured = bench(behaviours=behaviours, **call).measure()
        assert measured.error is not None
        assert (conclude(measured.error), words in measured.error.message) == (verdict, True)
        assert measured.problem == ""


@pytest.mark.parametrize("count", [0, 2])
def test_wrong_number_of_outputs_is_wrong(count: int) -> None:
    def change_count(timer: FakeSeat, request: Fetch) -> WorkerAnswer:
        returned = timer.returned(request)
        return msgspec.structs.replace(returned, structure="tuple", outputs=returned.outputs * count)

    measured = bench(behaviours={CANDIDATE: on(Fetch, change_count)}).measure()
    assert conclude(measured.error) is Verdict.WRONG


def test_input_changed_in_timed_calls_is_refused() -> None:
    """The candidate zeroes each copy in its first timed call; later calls could skip the zeros."""

    def zeroes(timer: FakeSeat, _request: TakeSample) -> None:
        start = list(timer.arguments.values())[1].offset_bytes
        timer.input_sets = [arena[:start] + bytes(4) + arena[start + 4 :] for arena in timer.input_sets]

    measured = bench(behaviours={CANDIDATE: on(TakeSample, zeroes)}).measure()
    assert conclude(measured.error) is Verdict.REJECTED
    assert measured.error is not None
    assert (measured.error.kind, "input `y`" in measured.error.message) == ("input_changed", True)
    assert "in calls that were timed" in measured.error.message
    assert bench(behaviours={BASELINE: on(TakeSample, zeroes)}).measure().error is None


def test_inputs_of_in_place_task_are_not_compared() -> None:
    on_bench = Bench(msgspec.structs.replace(small(), in_place=("y",)), {BASELINE: 1.0, CANDIDATE: 0.5})
    assert on_bench.measure().error is None
    assert not on_bench.requests(CANDIDATE, BringBack)


# Times that the clock refuses.


@pytest.mark.parametrize(
    "times",
    [
        lambda count: (1.0,) * (count - 1),
        lambda count: (1.0,) * (count + 1),
        lambda count: (-1.0,) * count,
        lambda count: (1.0,) * (count - 1) + (0.0,),
        lambda count: (1.0,) * (count - 1) + (math.nan,),
        lambda count: (math.inf,) * count,
        lambda count: (1e9,) * count,
        lambda _count: (),
    ],
    ids=["few", "many", "negative", "zero", "nan", "infinite", "huge", "none"],
)
def test_impossible_times_are_refused(times: Callable[[int], tuple[float, ...]]) -> None:
    def lies(_timer: FakeSeat, request: TakeSample) -> WorkerAnswer:
        return DoneReport(samples_ms=times(request.count))

    measured = bench(behaviours={CANDIDATE: on(TakeSample, lies)}).measure()
    assert conclude(measured.error) is Verdict.REJECTED
    assert measured.times == ()
    baseline = bench(behaviours={BASELINE: on(TakeSample, lies)}).measure()
    assert (baseline.error, "baseline" in baseline.problem) == (None, True)


def test_answer_of_wrong_kind_or_nonce_is_tampering() -> None:
    for answer in (
        lambda _timer, request: WorkerMessage("guessed", DoneReport(samples_ms=(1.0,) * request.count)),
        lambda _timer, _request: DoneReport(),
        lambda _timer, _request: Loaded(parameters={}),
    ):
        measured = bench(behaviours={CANDIDATE: on(TakeSample, answer)}).measure()
        assert conclude(measured.error) is Verdict.REJECTED
        assert measured.error is not None
        assert measured.error.kind == "tampering"
