"""Protects the ladder of clocks, over simulated players: a clock that fails changes no verdict, and the next clock times."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from harness.stages.verdicts import conclude
from harness.wire.messages.clock import BASELINE, CANDIDATE, EXAM, SIDES, Effort, Measured
from harness.wire.messages.guest import GPU_FAULT
from harness.wire.messages.requests import WorkerAnswer
from harness.wire.messages.timer import (
    METHOD_WORDS,
    NO_GRAPH_OF_A_SOURCE,
    UNTRUSTED_GRAPHS,
    Fetch,
    Prepare,
    TakeSample,
    TapedCall,
    list_rungs,
)
from harness.wire.results.evaluation import Verdict
from harness.wire.results.latency import TimingMethod
from harness.worker.clock.lines import TimerLine
from harness.worker.oracle.lines import GuestSlow
from tests.support.timing.fake_timers import (
    Bench,
    Dies,
    FakeSeat,
    bench,
    changed,
    no_descriptor_is_left,
    on,
    played,
    raises,
    small,
)
from tests.support.timing.simulated_players import Fault, SimulatedPlayers

__all__ = ["no_descriptor_is_left"]

FEW = Effort(pairs=2, looks=1, most_rounds=3)
AMD, NVIDIA = "gfx942", "sm_90"
SERIES = (TimingMethod.GRAPH, TimingMethod.BATCH, TimingMethod.PROFILER)


@functools.cache
def baseline_calls() -> dict[str, TapedCall]:
    """Return recorded calls of the baseline: a run with them needs no recorder for it."""
    on_bench = short_bench(SimulatedPlayers(None))
    on_bench.measure(effort=FEW)
    return on_bench.kept


def short_bench(players: SimulatedPlayers, **options: Any) -> Bench:
    """Return a bench with calls that are short enough for graphs."""
    behaviours = players.behaviours | options.pop("behaviours", {})
    return bench(baseline=0.1, candidate=0.05, captures=True, tapes=SIDES, behaviours=behaviours, **options)


def time_with(players: SimulatedPlayers, *, target: str, effort: Effort = FEW, **options: Any) -> Measured:
    on_bench = short_bench(players, **options)
    return on_bench.measure(effort=effort, target=target, baseline_calls=baseline_calls())


def methods_of(measured: Measured) -> set[TimingMethod]:
    return {process.method for process in measured.times}


def is_right_and_timed(measured: Measured) -> bool:
    """Whether a run ended as with an honest player: no error, and a time of both sides in each pair."""
    return (conclude(measured.error), measured.problem, len(measured.times)) == (Verdict.CORRECT, "", 4)


@pytest.mark.parametrize(
    "fault", [fault for fault in Fault if fault not in (Fault.CORRUPT_ALL, Fault.CHANGE_INPUTS)]
)
def test_players_that_fail_in_graphs_change_no_verdict(fault: Fault) -> None:
    is_random = fault is Fault.CORRUPT_ONE_IN_FIVE
    effort = Effort(pairs=2, looks=1, least_rounds=15) if "hundredth" in fault else FEW
    runs = [
        time_with(SimulatedPlayers(fault, TimingMethod.GRAPH, seed=seed), target=AMD, effort=effort)
        for seed in range(20 if is_random else 2)
    ]
    assert all(is_right_and_timed(measured) for measured in runs)
    methods = {method for measured in runs for method in methods_of(measured)}
    assert (TimingMethod.GRAPH in methods) if is_random else (methods == {TimingMethod.BATCH})
    assert any(measured.why_method for measured in runs)


@pytest.mark.parametrize("target", [AMD, NVIDIA])
@pytest.mark.parametrize("failing", range(len(SERIES) + 1))
def test_clock_steps_down_until_one_works(failing: int, target: str) -> None:
    players = SimulatedPlayers(Fault.ABORT_AT_REPLAY, *SERIES[:failing])
    measured = time_with(players, target=target, noise=0.0, bias=0.0)
    assert is_right_and_timed(measured)
    assert methods_of(measured) == {tuple(METHOD_WORDS)[failing]}
    assert measured.players_reusable
    tried = [
        (TimingMethod.GRAPH, 256),
        (TimingMethod.GRAPH, 32),
        (TimingMethod.BATCH, 0),
        (TimingMethod.PROFILER, 0),
    ]
    captured = list(dict.fromkeys((capture.method, capture.nodes) for capture in players.captures))
    assert captured == tried[: (1, 3, 4, 4)[failing]]
    assert len({capture.launches for capture in players.captures}) == 1, "inputs rotate over as many copies"
    assert bool(measured.why_method) == bool(failing)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault.CORRUPT_ALL, "a graph gave wrong outputs where"),
        (Fault.CHANGE_INPUTS, "a graph changed the input `x`"),
    ],
)
def test_kernel_that_is_right_only_without_a_graph_wins_nothing_on_amd(fault: Fault, words: str) -> None:
    """It is timed by the clock that plays its right calls; two pairs of players tried graphs before."""
    players = SimulatedPlayers(fault, TimingMethod.GRAPH)
    on_bench = short_bench(players)
    measured = on_bench.measure(effort=FEW, target=AMD, baseline_calls=baseline_calls())
    assert is_right_and_timed(measured)
    assert methods_of(measured) == {TimingMethod.BATCH}
    assert on_bench.engine_calls.count("players x2") == 3
    assert words in measured.why_method["fp32"]


@pytest.mark.parametrize(
    ("fault", "kind"), [(Fault.CORRUPT_ALL, "not_replayed"), (Fault.CHANGE_INPUTS, "input_changed")]
)
@pytest.mark.parametrize(
    ("target", "failing"), [(NVIDIA, [TimingMethod.GRAPH]), (AMD, [TimingMethod.GRAPH, TimingMethod.BATCH])]
)
def test_wrong_memory_is_refused_where_no_fault_of_the_clock_explains_it(
    target: str, failing: list[TimingMethod], fault: Fault, kind: str
) -> None:
    measured = time_with(SimulatedPlayers(fault, *failing), target=target)
    assert measured.error is not None
    assert (conclude(measured.error), measured.error.kind) == (Verdict.REJECTED, kind)


def test_wrong_outputs_are_refused_on_amd_too_if_single_calls_are_wrong() -> None:
    zeros = on(Fetch, changed(data=lambda data: bytes(len(data))))
    measured = time_with(SimulatedPlayers(None), target=AMD, behaviours={played(CANDIDATE): zeros})
    assert measured.error is not None
    assert measured.error.kind == "not_replayed"


@pytest.mark.parametrize("side", SIDES)
def test_source_is_timed_without_graphs_on_amd(side: str) -> None:
    """Its process runs foreign code, so another process would prove nothing about a graph with wrong outputs."""
    (other,) = set(SIDES) - {side}
    on_bench = bench(baseline=0.1, candidate=0.05, captures=True, tapes=[other])
    measured = on_bench.measure(target=AMD)
    assert (measured.error, methods_of(measured)) == (None, {TimingMethod.EVENTS})
    assert measured.why_method == {"fp32": NO_GRAPH_OF_A_SOURCE}
    on_nvidia = bench(baseline=0.1, candidate=0.05, captures=True, tapes=[other]).measure(target=NVIDIA)
    assert methods_of(on_nvidia) == {TimingMethod.GRAPH}


def test_player_that_hangs_in_a_replay_is_followed_by_the_next_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    players = SimulatedPlayers(None)
    ask = TimerLine.ask

    def hang(line: TimerLine, request: Any, *more: Any, **limits: Any) -> Any:
        if (
            isinstance(request, TakeSample)
            and request.replays
            and players.captures[-1].method is TimingMethod.GRAPH
        ):
            raise GuestSlow(60.0, cpu=False)
        return ask(line, request, *more, **limits)

    monkeypatch.setattr(TimerLine, "ask", hang)
    measured = time_with(players, target=NVIDIA)
    assert is_right_and_timed(measured)
    assert methods_of(measured) == {TimingMethod.BATCH}
    assert measured.why_method == {
        "fp32": "in graphs of at most 32 calls: a player failed: 60 s of wall time passed",
    }


@pytest.mark.parametrize(("target", "verdict"), [(NVIDIA, Verdict.CRASH), (AMD, Verdict.CORRECT)])
def test_fault_of_the_gpu_in_a_graph_is_the_kernels_on_nvidia_alone(target: str, verdict: Verdict) -> None:
    players = SimulatedPlayers(None)

    def fault(seat: FakeSeat, request: Any) -> WorkerAnswer | None:
        usual = players.behaviours[seat.side](seat, request)
        in_graph = isinstance(request, TakeSample) and request.replays
        return raises(GPU_FAULT)(seat, request) if in_graph and players.captures[-1].nodes else usual

    measured = time_with(players, target=target, behaviours={played(CANDIDATE): fault})
    assert conclude(measured.error) is verdict


def test_long_kernel_that_ends_its_player_is_blamed_at_once() -> None:
    """Its calls are timed one by one, so no other clock would help."""
    samples = iter(range(1, 1000))

    def end_late(_seat: FakeSeat, request: Any) -> None:
        if isinstance(request, TakeSample) and next(samples) > 4:
            raise Dies

    on_bench = bench(tapes=SIDES, captures=True, behaviours={played(CANDIDATE): end_late})
    measured = on_bench.measure(target=AMD)
    assert conclude(measured.error) is Verdict.CRASH
    assert on_bench.engine_calls.count("players x3") == 1


def test_graphs_are_no_larger_than_the_device_was_verified_for() -> None:
    players = SimulatedPlayers(None)
    on_bench = short_bench(players)
    assert is_right_and_timed(on_bench.measure(effort=FEW, graph_nodes=4, baseline_calls=baseline_calls()))
    assert {(capture.nodes, capture.launches > 4) for capture in players.captures} == {(4, True)}
    assert {prepare.graph_nodes for prepare in on_bench.requests(CANDIDATE, Prepare)} == {4}
    on_bench = short_bench(SimulatedPlayers(None))
    measured = on_bench.measure(effort=FEW, graph_nodes=0, baseline_calls=baseline_calls())
    assert methods_of(measured) == {TimingMethod.BATCH}
    assert measured.why_method == {"fp32": UNTRUSTED_GRAPHS}


def test_clock_that_failed_is_not_tried_again_in_later_cases() -> None:
    players = SimulatedPlayers(Fault.ABORT_AT_CAPTURE, TimingMethod.GRAPH)
    on_bench = Bench(
        small("fp32", "fp32-ragged"),
        {BASELINE: 0.1, CANDIDATE: 0.05},
        captures=True,
        tapes=SIDES,
        behaviours=players.behaviours,
    )
    measured = on_bench.measure(effort=FEW)
    assert methods_of(measured) == {TimingMethod.BATCH}
    assert on_bench.engine_calls.count("players x2") == 3
    assert set(measured.why_method) == {"fp32", "fp32-ragged"}


def test_exam_times_each_case_in_six_processes() -> None:
    on_bench = short_bench(SimulatedPlayers(None))
    measured = on_bench.measure(effort=EXAM, baseline_calls=baseline_calls())
    assert on_bench.engine_calls.count("players x3") == 2
    by_pair = {event.seat.number for event in on_bench.events if isinstance(event.request, TakeSample)}
    assert (len(by_pair), len(measured.times)) == (6, 12)


def test_page_about_timing_has_the_ladder_in_its_order() -> None:
    page = (Path(__file__).parents[3] / "docs" / "timing.md").read_text()
    table = page.partition("## The ladder of clocks")[2].partition("\n## ")[0]
    places = [table.index(f"| *{method.value}") for method in METHOD_WORDS]
    assert places == sorted(places)
    assert [rung.method for rung in list_rungs(None, taped=True)] == [TimingMethod.GRAPH, *METHOD_WORDS]
