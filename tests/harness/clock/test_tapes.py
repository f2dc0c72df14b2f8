"""Protects the timing of tapes, which players play, over fake timers: results, who is blamed, how long the clock waits."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from harness.stages.verdicts import conclude
from harness.wire import limits
from harness.wire.calls.launch_tape import Tape
from harness.wire.messages.clock import BASELINE, CANDIDATE, SIDES
from harness.wire.messages.guest import GPU_FAULT
from harness.wire.messages.requests import WorkerRequest
from harness.wire.messages.timer import (
    LEAST_IN_BLOCK,
    Fetch,
    Prepare,
    TakeSample,
)
from harness.wire.messages.timer import Done as DoneReport
from harness.wire.results.evaluation import Verdict
from harness.worker.clock.lines import TimerLine
from tests.support.timing.fake_timers import (
    LIMITS,
    Behaviour,
    FakeSeat,
    bench,
    changed,
    dies,
    no_descriptor_is_left,
    on,
    played,
    raises,
    sides_and_pairs,
    silent,
)

__all__ = ["no_descriptor_is_left"]


def test_taped_calls_are_timed_and_checked_in_players_alone() -> None:
    on_bench = bench("fp32", "fp32-ragged", tapes=SIDES)
    seen: dict[str, set[bytes]] = {CANDIDATE: set(), played(CANDIDATE): set()}

    def note(kind: type[Any]) -> Behaviour:
        def behave(seat: FakeSeat, request: Any) -> None:
            if isinstance(request, kind):
                seen[seat.side].update(seat.input_sets)

        return behave

    on_bench.behaviours = {CANDIDATE: note(object), played(CANDIDATE): note(Fetch)}
    measured = on_bench.measure()
    assert (measured.error, measured.problem) == (None, "")
    assert all(process.taped for process in measured.times)
    assert sides_and_pairs(measured) == sorted(
        (case, side, pair) for case in ("fp32", "fp32-ragged") for side in SIDES for pair in range(3)
    )
    assert not on_bench.requests(CANDIDATE, TakeSample)
    assert not on_bench.requests(CANDIDATE, Fetch)
    assert len(seen[played(CANDIDATE)]) == 2
    assert not seen[played(CANDIDATE)] & seen[CANDIDATE], "the checked values are new to the candidate"
    assert measured.confirmed_outputs == 2 * LEAST_IN_BLOCK
    assert [(tape.case, tape.why_not) for tape in measured.tapes] == [
        ("fp32", ""),
        ("fp32-ragged", ""),
    ]
    assert measured.players_reusable
    assert measured.tapes_played == 2 * 6


def test_recorders_end_before_the_lease() -> None:
    on_bench = bench("fp32", tapes=SIDES)
    running: list[bool] = []

    def at_lease() -> None:
        for timer in on_bench.started:
            timer.join(60)
        running.extend(timer.is_alive() for timer in on_bench.started)

    on_bench.at_lease = at_lease
    assert on_bench.measure().problem == ""
    assert running == [False, False]


def test_recorded_baseline_is_not_started_again() -> None:
    first = bench("fp32", tapes=SIDES)
    first.measure()
    assert list(first.kept) == ["fp32"]
    on_bench = bench("fp32", tapes=SIDES)
    again = on_bench.measure(baseline_calls=first.kept)
    assert on_bench.engine_calls[0] == "timers candidate x1"
    assert (again.problem, len(again.times)) == ("", 6)


@pytest.mark.parametrize("side", SIDES)
def test_side_without_a_tape_is_timed_from_its_source(side: str) -> None:
    (other,) = set(SIDES) - {side}
    on_bench = bench("fp32", tapes=[other])
    measured = on_bench.measure()
    assert {(process.side, process.taped) for process in measured.times} == {(side, False), (other, True)}
    assert [process.wall_ms is not None for process in measured.times if process.pair == 0] == [
        not process.taped for process in measured.times if process.pair == 0
    ]
    assert on_bench.engine_calls.count(f"timers {side} x2") == 1
    why_not = [tape.why_not for tape in measured.tapes]
    assert why_not == (["no GPU here"] if side == CANDIDATE else [""])


@pytest.mark.parametrize(("bias", "pairs"), [(0.05, 6), (0.0001, 3)])
def test_unresolved_case_gets_more_pairs(bias: float, pairs: int) -> None:
    """Times of seats of one process differ too: each has its own place in memory."""
    measured = bench(baseline=0.5, tapes=SIDES, behaviours=biased(bias)).measure()
    assert sides_and_pairs(measured) == sorted(
        ("fp32", side, pair) for side in SIDES for pair in range(pairs)
    )


def biased(bias: float) -> dict[str, Behaviour]:
    """Seats of the candidate are slower and faster by turns."""

    def play(seat: FakeSeat, request: Any) -> None:
        if isinstance(request, Prepare):
            seat.ms = 0.5 * (1 + bias * next(signs))

    signs = itertools.cycle((1, -1))
    return {played(CANDIDATE): play}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("when", "how"),
    [
        (Tape, dies),
        (Tape, lambda _seat, _request: DoneReport(problem="no such kernel")),
        (Prepare, raises(GPU_FAULT)),
        (TakeSample, dies),
    ],
    ids=["dies", "refuses", "faults", "dies in a sample"],
)
def test_players_that_failed_are_not_used_again(when: type[Any], how: Any, side: str) -> None:
    measured = bench("fp32", tapes=SIDES, behaviours={played(side): on(when, how)}).measure()
    assert not measured.players_reusable
    assert measured.times == ()
    assert measured.error or measured.problem
    if side == BASELINE:
        assert measured.error is None


def test_baseline_that_kills_its_player_is_not_blamed_on_the_candidate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench_of_deaths = bench("fp32", tapes=SIDES, behaviours={played(BASELINE): on(Tape, dies)})
    send = TimerLine.send

    def send_late(line: TimerLine, request: WorkerRequest, *more: Any, **limits: Any) -> None:
        if isinstance(request, Tape) and line.side == CANDIDATE:
            bench_of_deaths.started[-1].join(10)
        send(line, request, *more, **limits)

    monkeypatch.setattr(TimerLine, "send", send_late)
    measured = bench_of_deaths.measure()
    assert measured.error is None
    assert "the baseline could not be timed" in measured.problem


def test_tape_with_different_outputs_is_refused() -> None:
    zeros = on(Fetch, changed(data=lambda data: bytes(len(data))))
    measured = bench("fp32", tapes=SIDES, behaviours={played(CANDIDATE): zeros}).measure()
    assert conclude(measured.error) == "rejected"
    assert measured.error is not None
    assert measured.error.kind == "not_replayed"
    assert "a process that never saw the source" in measured.error.message


def test_candidate_whose_tape_hangs_is_too_slow() -> None:
    hangs = {played(CANDIDATE): on(TakeSample, silent)}
    measured = bench("fp32", tapes=SIDES, behaviours=hangs, answer_limits_s={"Done": 0.3}).measure()
    assert conclude(measured.error) is Verdict.TIMEOUT
    assert not measured.players_reusable


def test_clock_waits_less_long_for_a_tape_than_the_engine_for_the_clock() -> None:
    """A tape that hangs when it is first played is then a timeout of its side, and no failure of ours."""
    on_bench = bench("fp32", tapes=SIDES)
    assert on_bench.measure().error is None
    assert 0 < on_bench.longest_waits_s["Prepared"] < LIMITS.call_s + limits.ORACLE_S
