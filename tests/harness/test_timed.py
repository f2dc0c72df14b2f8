"""What the clock's times are made into, over constructed times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.cases.seeds import derive
from harness.hardware.product_tables import find_product
from harness.hardware.targets import target
from harness.node.telemetry import Point, Watched
from harness.stages import slot_evaluation
from harness.stages.sheet import Sheet
from harness.stages.slot_evaluation import Evaluating
from harness.stages.timing.conclusions import (
    CONFIRMED_MS,
    Timing,
    concluded,
    confirmed,
    mean_speedups,
    tape_facts,
    undisturbed,
)
from harness.wire.clock_messages import BASELINE, CANDIDATE, TAPE, Floor, Measured, ProcessTimes, Taped
from harness.wire.effort import WHOLE
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.latency import Latency, Outcome

from .timings import GPU, MEASURE, QUIET, TASK, process, times


def told(
    *found: ProcessTimes,
    product: str = "",
    left_out: Mapping[tuple[str, str], int] | None = None,
    **changes: Any,
) -> Timing:
    measured = msgspec.structs.replace(Measured(times=found, floor=None), **changes)
    known = find_product(product) if product else None
    sides = {one.side for one in found if one.side != TAPE} | {BASELINE, CANDIDATE}
    measure = msgspec.structs.replace(MEASURE, sources=dict.fromkeys(sorted(sides), "x"))
    return concluded(GPU, known, measure, measured, QUIET, Counter(left_out or {}))


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        (0.5, Outcome.FASTER),
        (2.0, Outcome.SLOWER),
        (1.0, Outcome.NOT_RESOLVED),
        (1.004, Outcome.NOT_RESOLVED),
    ],
)
def test_a_case_has_its_ratio_and_what_may_be_said_of_it(candidate: float, outcome: Outcome) -> None:
    (one,) = told(*times(baseline=1.0, candidate=candidate)).latency
    assert one.outcome is outcome
    assert one.speedup == pytest.approx(1 / candidate)
    assert one.ci is not None
    assert one.ci[0] <= 1 / candidate <= one.ci[1]
    assert (one.baseline_ms, one.candidate_ms, one.pairs) == (1.0, candidate, 3)
    assert one.candidate is not None
    assert (one.candidate.samples, one.candidate.processes, one.candidate.peak_bytes) == (30, 3, 300)
    assert (one.against, one.cache) == ("triton", "cold")


@pytest.mark.parametrize(("short", "other"), [("baseline", "candidate"), ("candidate", "baseline")])
def test_below_five_floors_of_either_side_there_is_no_ratio(short: str, other: str) -> None:
    floor = Floor(empty_ms=0.002, copies=())

    def of(ms: float) -> Latency:
        found = [process(side, pair, by) for pair in range(3) for side, by in ((short, ms), (other, 0.02))]
        return told(*found, floor=floor).latency[0]

    below = of(0.0099)
    assert (below.outcome, below.speedup, below.ci) == (Outcome.TOO_SHORT, None, None)
    assert below.floor_ms == 0.002
    assert of(0.0101).outcome is not Outcome.TOO_SHORT


def test_a_rival_is_told_beside_with_a_ratio_of_its_own() -> None:
    (one,) = told(*times(baseline=1.0, candidate=0.5, rival=0.6)).latency
    assert one.rival_ms == 0.6
    assert one.rival_speedup == pytest.approx(1.2)
    assert one.rival_ci is not None
    assert one.rival_ci[0] <= 1.2 <= one.rival_ci[1]


@pytest.mark.parametrize(
    ("event", "wall", "tape", "word"),
    [
        (1.0, None, None, "bound"),
        (1.0, 1.05, None, "wall"),
        (1.0, 0.9, None, "wall"),
        (1.0, 1.2, None, "bound"),
        (0.01, 0.01 + 0.9 * CONFIRMED_MS, None, "wall"),
        (0.01, 0.01 + 1.1 * CONFIRMED_MS, None, "bound"),
        (1.0, 1.2, 1.05, "graph"),
        (1.0, 1.0, 1.05, "graph"),
        (1.0, 1.05, 1.2, "wall"),
        (1.0, 5.0, 5.0, "bound"),  # a guest that says a fifth of the truth
    ],
)
def test_a_candidates_word_is_confirmed_by_times_out_of_its_reach(
    event: float, wall: float | None, tape: float | None, word: str
) -> None:
    assert confirmed(event, wall, tape) == word


def test_a_time_that_its_tape_contradicts_is_none() -> None:
    first, second, *_ = TASK.open_cases
    both = [*times(first.name, baseline=1.0, candidate=0.5), *times(second.name, baseline=1.0, candidate=0.5)]
    timing = told(*both, process(TAPE, 3, 0.51), process(TAPE, 3, 1.0, case=second.name))
    assert [one.case for one in timing.latency] == [first.name]
    assert f"{second.name}: the candidate's launches take 1.0000 ms" in timing.notes[0]
    assert mean_speedups(timing.latency, [second.name]) == (None, None)


def test_a_time_that_the_clocks_own_watch_contradicts_is_none_where_no_tape_was_played() -> None:
    watched = [msgspec.structs.replace(one, wall_ms=1.0) for one in times(baseline=1.0, candidate=0.5)]
    assert told(*watched).latency == ()
    assert "1.0000 ms on the clock's own watch" in told(*watched).detail
    (one,) = told(*watched, process(TAPE, 3, 0.5)).latency
    assert one.confirmed == "graph"
    short = [msgspec.structs.replace(one, wall_ms=0.05) for one in times(baseline=0.02, candidate=0.01)]
    assert told(*short).latency[0].confirmed == "bound"  # the host's time for a launch


def test_a_baseline_that_fails_leaves_the_candidate_correct_and_says_why() -> None:
    timing = told(problem="case fp32: the baseline could not be timed: boom")
    assert (timing.verdict, timing.error, timing.ok) == (Verdict.CORRECT, None, None)
    assert "the baseline could not be timed: boom" in timing.detail


def test_what_was_timed_before_a_problem_is_told_with_it() -> None:
    timing = told(*times(baseline=1.0, candidate=0.5), problem="full")
    assert timing.ok is True
    assert timing.notes == (f"timing was not whole: 1 of {len(TASK.open_cases)} cases: full",)


def test_why_a_case_was_not_timed_is_told_by_its_own_samples() -> None:
    first, second = (case.name for case in TASK.open_cases[:2])
    left_out = {(first, CANDIDATE): 900, (second, BASELINE): 7, (second, CANDIDATE): 5}
    disturbed = "12 samples were disturbed by a drop of the clock or by others on the device"
    timing = told(*times(first, baseline=1.0, candidate=0.5), left_out=left_out)
    assert timing.notes == (f"timing was not whole: 1 of {len(TASK.open_cases)} cases: {disturbed}",)
    timing = told(left_out={(second, BASELINE): 7, (second, CANDIDATE): 5})
    assert timing.detail == f"not timed: {disturbed}"


def test_a_candidate_that_is_refused_has_no_latency() -> None:
    error = ErrorReport(kind="mismatch", message="wrong")
    timing = told(*times(baseline=1.0, candidate=0.5), verdict="wrong", error=error)
    assert (timing.latency, timing.verdict, timing.error, timing.ok) == ((), Verdict.WRONG, error, False)


def test_efficiency_is_of_the_cases_bytes_at_a_gpus_sizes() -> None:
    (one,) = told(*times(baseline=1.0, candidate=0.5), product="H200 SXM").latency
    elements = next(case for case in TASK.cases if case.name == "fp32").gpu["n"]
    assert one.efficiency is not None
    assert one.efficiency.bytes == 3 * 4 * elements
    peak = find_product("H200 SXM").memory_bytes_per_s
    assert one.efficiency.io_utilisation == pytest.approx(3 * 4 * elements / 0.5e-3 / peak)
    assert told(*times(baseline=1.0, candidate=0.5)).latency[0].efficiency is None


def test_mean_speedups_leave_out_cases_without_a_ratio() -> None:
    def case(speedup: float | None) -> Latency:
        return Latency(
            device="0", case="c", baseline_ms=1, candidate_ms=1, speedup=speedup, ci=None, confirmed="bound"
        )

    mean, geometric = mean_speedups([case(1.0), case(None), case(4.0)], ())
    assert mean == pytest.approx(2.5)
    assert geometric == pytest.approx(2.0)
    assert mean_speedups([case(None)], ()) == mean_speedups([], ()) == (None, None)


@pytest.mark.parametrize("timed_cases", [1, 4, 5])
async def test_the_speedup_over_some_cases_is_not_the_tasks(
    monkeypatch: pytest.MonkeyPatch, timed_cases: int
) -> None:
    names = [case.name for case in TASK.open_cases]
    found = [one for name in names[:timed_cases] for one in times(name, baseline=1.0, candidate=0.5)]

    class Measuring:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def measure(self, *_: object, **__: object) -> Timing:
            return told(*found, problem="full" if timed_cases < len(names) else "")

    async def channel() -> None: ...

    monkeypatch.setattr(slot_evaluation, "Performance", Measuring)
    sheet = Sheet(TASK, "0", None)
    one = SimpleNamespace(
        _pool=None,
        _slot=SimpleNamespace(channel=channel),
        _task=TASK,
        _asked=SimpleNamespace(targets=(target("sm_90"),), source="", rival=None, against=None, effort=WHOLE),
        _timing_seed=lambda: 1,
        _sheet=sheet,
    )
    assert await Evaluating._time(cast(Any, one)) == (Verdict.CORRECT, None)
    evaluation = sheet.done(Verdict.CORRECT, None)
    assert len(evaluation.latency) == timed_cases
    assert evaluation.not_timed == tuple(names[timed_cases:])
    if timed_cases < len(names):
        assert (evaluation.speedup, evaluation.speedup_geomean) == (None, None)
        assert evaluation.in_part == f"not whole: {timed_cases} of {len(names)} cases"
    else:
        assert (evaluation.speedup, evaluation.in_part) == (pytest.approx(2.0), "")


def test_blocks_while_others_used_the_device_are_left_out_and_counted() -> None:
    one = process(CANDIDATE, 0, 1.0, began_s=10.0)
    other = process(BASELINE, 0, 1.0, began_s=20.0)
    points = tuple(
        Point(at_s=at / 10, clock_mhz=1900, others=1 if 100 <= at <= 105 else 0) for at in range(90, 230)
    )
    kept, left_out = undisturbed((one, other), Watched(QUIET, points))
    assert [len(each.blocks) for each in kept] == [1, 2]
    assert left_out == Counter({("fp32", CANDIDATE): 5})
    crowded = tuple(msgspec.structs.replace(each, others=int(each.at_s >= 9.5)) for each in points)
    assert undisturbed((one,), Watched(QUIET, crowded))[0] == ()
    waiting = tuple(msgspec.structs.replace(each, others=2) for each in points)
    assert undisturbed((one,), Watched(QUIET, waiting))[0] == (one,), "they hold memory and compute nothing"


@pytest.mark.parametrize(
    ("tape", "compiled", "words", "basis"),
    [
        (Taped("fp32", 2, ("a",), played=True), {"a", "b"}, "as compiled from the source", "proof"),
        (Taped("fp32", 2, ("a", "x"), played=True), {"a"}, "not among those", "evidence"),
        (Taped("fp32", why_not="host code"), {"a"}, "none: host code", "evidence"),
    ],
)
def test_a_tape_proves_something_only_with_binaries_of_the_source(
    tape: Taped, compiled: set[str], words: str, basis: str
) -> None:
    (fact,) = tape_facts(Measured(times=(), floor=None, tapes=(tape,)), compiled)
    assert words in fact.value
    assert fact.basis == basis


def test_an_exam_is_timed_with_values_of_its_own() -> None:
    def seed(*, exam: bool) -> int:
        return Evaluating._timing_seed(cast(Any, SimpleNamespace(_asked=SimpleNamespace(exam=exam, seed=5))))

    assert seed(exam=False) == 5
    assert seed(exam=True) == derive(5, "confirm") != 5
