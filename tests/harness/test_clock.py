"""The clock over simulated timers: order, how long it looks, and whom it believes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch

from harness.wire.clock_messages import BASELINE, CANDIDATE, RIVAL, TAPE, Floor, Measured
from harness.wire.evaluation import Verdict
from harness.wire.guest_messages import GPU_FAULT, Farewell, Load, Loaded
from harness.wire.launch_tape import Tape
from harness.wire.timer_messages import (
    Batch,
    BringBack,
    Fetch,
    Play,
    Prepare,
    Prepared,
    Record,
    Recorded,
    Renew,
    Sample,
    Sampled,
    TimerReport,
)
from harness.wire.timer_messages import Done as DoneReport
from harness.worker.clock import timed_process
from harness.worker.kit.arena import storage_bytes

from .fake_timers import (
    Behaviour,
    Bench,
    FakeTimer,
    bench,
    dies,
    no_descriptor_is_left,
    on,
    raises,
    silent,
    small,
)

__all__ = ["no_descriptor_is_left"]

EMPTY_TAPE = Tape(kernels=(), buffers=(), steps=(), outputs=(), structure="tensor")


def sides_and_pairs(measured: Measured) -> list[tuple[str, str, int]]:
    return sorted((one.case, one.side, one.pair) for one in measured.times)


# Order and length.


def test_every_case_is_timed_in_three_pairs_and_its_outputs_are_compared() -> None:
    on_bench = bench("fp32", "fp16-ragged")
    measured = on_bench.measure()
    assert (measured.verdict, measured.problem) == ("", "")
    assert sides_and_pairs(measured) == sorted(
        (case, side, pair)
        for case in ("fp32", "fp16-ragged")
        for side in (BASELINE, CANDIDATE)
        for pair in range(3)
    )
    assert measured.confirmed_outputs == 2
    assert measured.not_shared != ""  # no driver here
    assert on_bench.asked[0] == "timers baseline,candidate x3 instead"


def test_all_is_imported_and_compiled_before_the_device_is_asked_for_and_nothing_runs() -> None:
    on_bench = bench()
    seen: list[str] = []
    on_bench.at_lease = lambda: seen.extend(one.kind for one in on_bench.events)
    on_bench.measure()
    assert seen.count("Load") == seen.count("Prepare") == 6
    assert set(seen) == {"Load", "Prepare"}
    assert all(one.ahead for one in on_bench.met(CANDIDATE, Prepare)[:3])


def test_one_timer_is_active_at_a_time() -> None:
    on_bench = bench(meets=True)
    on_bench.measure()
    assert on_bench.together == 1


def test_the_order_is_drawn_anew_each_round() -> None:
    on_bench = bench("fp32", "fp32-ragged", "fp16-ragged", noise=0.05, bias=0.0)
    on_bench.measure()
    counted = [one for one in on_bench.events if isinstance(one.request, Sample | Batch | Prepare)]
    rounds: list[tuple[str, ...]] = []
    blocks: list[str] = []
    for event in counted:
        if isinstance(event.request, Sample):
            blocks.append(event.timer.name)
        elif blocks:
            rounds += [
                tuple(blocks[start : start + 6])
                for start in range(6, len(blocks) - 5, 6)  # the first six find the size of a block
            ]
            blocks = []
    rounds = [one for one in rounds if len(set(one)) == 6]
    assert len(rounds) >= 9
    assert len(set(rounds)) > len(rounds) // 2  # 720 orders


def test_rounds_go_on_while_medians_are_not_known() -> None:
    steady, noisy = bench(noise=0.0), bench(noise=0.2)
    assert {len(one.blocks) for one in steady.measure().times} == {3}
    assert {len(one.blocks) for one in noisy.measure(budget_s=1e6).times} == {15}


def test_a_spent_budget_ends_rounds_and_looks_but_leaves_three_of_each() -> None:
    on_bench = bench("fp32", "fp32-ragged", noise=0.2, bias=0.1)
    measured = on_bench.measure(budget_s=0.0)
    assert {len(one.blocks) for one in measured.times} == {3}
    assert {one.pair for one in measured.times} == {0, 1, 2}
    assert {one.case for one in measured.times} == {"fp32", "fp32-ragged"}


def test_a_wide_interval_gets_a_second_look_in_other_processes() -> None:
    on_bench = bench(bias=0.05)
    measured = on_bench.measure()
    assert sorted({one.pair for one in measured.times}) == [0, 1, 2, 3, 4, 5]
    assert on_bench.asked.count("timers baseline,candidate x3 instead") == 2
    assert measured.confirmed_outputs == 1  # looked at once
    assert len(on_bench.met(CANDIDATE, Farewell)) == 6


def test_a_case_that_is_too_short_gets_no_second_look_and_no_more_rounds() -> None:
    on_bench = bench(bias=0.05, noise=0.2)
    measured = on_bench.measure(floor=Floor(empty_ms=0.3, copies=()))
    assert {one.pair for one in measured.times} == {0, 1, 2}
    assert {len(one.blocks) for one in measured.times} == {1}


def test_a_rival_is_timed_in_every_pair_beside_the_others() -> None:
    on_bench = Bench(small(), {BASELINE: 1.0, CANDIDATE: 0.5, RIVAL: 0.6})
    measured = on_bench.measure()
    assert {(one.side, one.pair) for one in measured.times} == {
        (side, pair) for side in (BASELINE, CANDIDATE, RIVAL) for pair in range(3)
    }


def test_a_candidate_that_says_it_is_short_is_watched_all_the_same() -> None:
    measured = Bench(small("fp32"), {BASELINE: 0.02, CANDIDATE: 0.003}).measure()
    watched = {one.side: one.wall_ms for one in measured.times if one.pair == 0}
    assert watched[CANDIDATE] is not None
    assert watched[BASELINE] is None


def test_what_the_first_process_chose_is_handed_to_the_others_of_its_side() -> None:
    def tuned(timer: FakeTimer, request: Prepare) -> TimerReport:
        chosen = request.chosen or {"kernel": f"BLOCK: {timer.pair}"}
        return Prepared(
            nonce=request.nonce, call_ms=0.01, peak_bytes=0, configs={} if request.ahead else chosen
        )

    on_bench = bench(bias=0.05, behaviours={CANDIDATE: on(Prepare, tuned)})
    measured = on_bench.measure(source="triton.autotune")
    configs = {one.pair: one.configs for one in measured.times if one.side == CANDIDATE}
    assert configs == {pair: {"kernel": "BLOCK: 0"} for pair in range(6)}
    asked = [one for one in on_bench.met(CANDIDATE, Prepare) if not one.ahead]
    assert [bool(one.chosen) for one in asked] == [False, True, True, True, True, True]
    assert all(not one.chosen for one in on_bench.met(BASELINE, Prepare))


# Outputs.


def test_values_put_into_timed_tensors_were_never_seen_before() -> None:
    on_bench = bench()
    seen: dict[str, list[list[bytes]]] = {CANDIDATE: []}

    def note(timer: FakeTimer, _request: Any) -> None:
        seen[CANDIDATE].append(list(timer.given))

    on_bench.behaviours[CANDIDATE] = on(Prepare | Renew, note)  # type: ignore[arg-type]
    on_bench.measure()
    *before, renewed = seen[CANDIDATE]
    assert len(renewed) == 1
    known = {one for given in before for one in given}
    assert len(known) == 2  # two sets of values, the same to all
    assert renewed[0] not in known


def test_a_candidate_that_gives_the_answers_of_before_is_wrong() -> None:
    kept: dict[str, bytes] = {}

    def lazy(timer: FakeTimer, request: Any) -> TimerReport | None:
        if isinstance(request, Prepare) and timer.given:
            kept[timer.name] = timer.given[0]
        return timer.returned(request, kept[timer.name]) if isinstance(request, Fetch) else None

    measured = bench(behaviours={CANDIDATE: lazy}).measure()
    assert measured.verdict == Verdict.WRONG
    assert measured.error is not None
    assert "in a call that was timed" in measured.error.message
    assert measured.confirmed_outputs == 0


def changed(**changes: Any) -> Callable[[FakeTimer, Any], TimerReport]:
    """The right answer, but for these fields of its output; functions are given what was there."""

    def answer(timer: FakeTimer, request: Fetch) -> TimerReport:
        returned = timer.returned(request)
        old = returned.outputs[0]
        new = {
            name: value(getattr(old, name)) if callable(value) else value for name, value in changes.items()
        }
        return msgspec.structs.replace(returned, outputs=(msgspec.structs.replace(old, **new),))

    return answer


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
        ({"data": lambda data: storage_bytes(torch.full((len(data) // 4,), math.nan))}, Verdict.WRONG, "NaN"),
    ],
)
def test_outputs_that_are_not_the_tasks_are_the_candidates_fault(
    changes: dict[str, Any], verdict: Verdict, words: str
) -> None:
    measured = bench(behaviours={CANDIDATE: on(Fetch, changed(**changes))}).measure()
    assert measured.error is not None
    assert (measured.verdict, words in measured.error.message) == (verdict, True), measured.error.message
    assert measured.problem == ""


@pytest.mark.parametrize("count", [0, 2])
def test_more_or_fewer_outputs_than_the_task_has_are_wrong(count: int) -> None:
    def many(timer: FakeTimer, request: Fetch) -> TimerReport:
        returned = timer.returned(request)
        return msgspec.structs.replace(returned, structure="tuple", outputs=returned.outputs * count)

    measured = bench(behaviours={CANDIDATE: on(Fetch, many)}).measure()
    assert measured.verdict == Verdict.WRONG


def test_inputs_that_a_candidate_changes_while_it_is_timed_are_refused() -> None:
    """Each copy once, in its first timed call: what is zero from then on may be left out."""

    def zeroes(timer: FakeTimer, _request: Sample) -> None:
        start = timer.arguments[1].offset_bytes
        timer.given = [one[:start] + bytes(4) + one[start + 4 :] for one in timer.given]

    measured = bench(behaviours={CANDIDATE: on(Sample, zeroes)}).measure()
    assert measured.verdict == Verdict.REJECTED
    assert measured.error is not None
    assert (measured.error.kind, "input `y`" in measured.error.message) == ("input_changed", True)
    assert "in calls that were timed" in measured.error.message
    assert bench(behaviours={BASELINE: on(Sample, zeroes)}).measure().verdict == ""


def test_inputs_of_a_task_that_changes_them_are_not_looked_at() -> None:
    on_bench = Bench(msgspec.structs.replace(small(), in_place=("y",)), {BASELINE: 1.0, CANDIDATE: 0.5})
    assert on_bench.measure().verdict == ""
    assert not on_bench.met(CANDIDATE, BringBack)


# Times.


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
def test_times_that_are_no_times_are_refused(times: Callable[[int], tuple[float, ...]]) -> None:
    def lies(_timer: FakeTimer, request: Sample) -> TimerReport:
        return Sampled(nonce=request.nonce, samples_ms=times(request.count))

    measured = bench(behaviours={CANDIDATE: on(Sample, lies)}).measure()
    assert measured.verdict == Verdict.REJECTED
    assert measured.times == ()
    baseline = bench(behaviours={BASELINE: on(Sample, lies)}).measure()
    assert (baseline.verdict, "baseline" in baseline.problem) == ("", True)


def test_an_answer_to_another_question_is_tampering() -> None:
    for answer in (
        lambda _timer, request: Sampled(nonce="guessed", samples_ms=(1.0,) * request.count),
        lambda _timer, request: DoneReport(nonce=request.nonce),
        lambda _timer, request: Loaded(nonce=request.nonce, parameters={}),
    ):
        measured = bench(behaviours={CANDIDATE: on(Sample, answer)}).measure()
        assert measured.verdict == Verdict.REJECTED
        assert measured.error is not None
        assert measured.error.kind == "tampering"


def test_outputs_in_the_memory_of_another_call_are_refused() -> None:
    shared = on(Fetch, changed(aliases="the output of another call"))
    measured = bench("fp32", behaviours={CANDIDATE: shared}).measure()
    assert measured.verdict == Verdict.REJECTED
    assert measured.error is not None
    assert measured.error.kind == "aliased_output"
    assert "in a call that was timed" in measured.error.message


# Tapes.


def taped(tape: Tape = EMPTY_TAPE) -> Behaviour:
    return on(Record, lambda _timer, request: Recorded(nonce=request.nonce, tape=tape))


def test_a_tape_is_played_elsewhere_and_compared_on_values_that_the_candidate_never_saw() -> None:
    on_bench = bench("fp32", "fp32-ragged")
    seen: dict[str, set[bytes]] = {CANDIDATE: set(), TAPE: set()}

    def candidate(timer: FakeTimer, request: Any) -> TimerReport | None:
        seen[CANDIDATE].update(timer.given)
        return taped()(timer, request)

    def player(timer: FakeTimer, request: Any) -> None:
        if isinstance(request, Fetch):
            seen[TAPE].update(timer.given)

    on_bench.behaviours = {CANDIDATE: candidate, TAPE: player}
    measured = on_bench.measure()
    assert [one.played for one in measured.tapes] == [True, True]
    assert len(seen[TAPE]) == 2
    assert not seen[TAPE] & seen[CANDIDATE]
    assert on_bench.asked.count("timers tape x1") == 1  # one process for all tapes
    assert not on_bench.met(TAPE, Load)
    assert measured.confirmed_outputs == 4


@pytest.mark.parametrize(
    ("when", "how"),
    [
        (Play, dies),
        (Play, lambda _timer, request: DoneReport(nonce=request.nonce, problem="no such kernel")),
        (Prepare, raises(GPU_FAULT)),
        (Sample, dies),
        (Sample, lambda _timer, request: Sampled(nonce=request.nonce, samples_ms=())),
        (Fetch, changed(data=b"")),
        (Fetch, changed(dtype="float64")),
    ],
    ids=["dies", "refuses", "faults", "dies in a sample", "no times", "short", "dtype"],
)
def test_a_tape_that_does_not_play_is_no_tape_and_harms_nothing(when: type[Any], how: Any) -> None:
    on_bench = bench("fp32", "fp32-ragged", behaviours={CANDIDATE: taped(), TAPE: on(when, how)})
    measured = on_bench.measure()
    assert (measured.verdict, measured.problem) == ("", "")
    assert [one.played for one in measured.tapes] == [False, False]
    assert all(one.why_not for one in measured.tapes)
    assert {one.side for one in measured.times} == {BASELINE, CANDIDATE}
    assert len(measured.times) == 12


def test_launches_that_give_other_outputs_without_their_source_are_refused() -> None:
    zeros = on(Fetch, changed(data=lambda data: bytes(len(data))))
    measured = bench("fp32", "fp32-ragged", behaviours={CANDIDATE: taped(), TAPE: zeros}).measure()
    assert measured.verdict == "rejected"
    assert measured.error is not None
    assert measured.error.kind == "not_replayed"
    assert "a process that never saw the source" in measured.error.message


def test_a_tape_that_hangs_ends_the_timing_for_it_holds_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timed_process, "STEP_S", 2.0)
    on_bench = bench("fp32", "fp32-ragged", behaviours={CANDIDATE: taped(), TAPE: on(Sample, silent)})
    measured = on_bench.measure()
    assert measured.verdict == ""
    assert "the tape could not be timed" in measured.problem
    assert {(one.side, one.case) for one in measured.times} == {(BASELINE, "fp32"), (CANDIDATE, "fp32")}
