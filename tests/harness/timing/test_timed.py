"""Protects the conclusions from the clock's times: ratios, outcomes, confirmation, notes and mean speedups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from harness.cases.seeds import derive
from harness.hardware.product_tables import find_product
from harness.stages.modes import Attempt, Exam
from harness.stages.sheet import Sheet
from harness.stages.timing.baselines import USUAL
from harness.stages.timing.conclusions import (
    CONFIRMED_MS,
    Timing,
    conclude_timing,
    confirm_time,
    tape_facts,
)
from harness.stages.trial import TrialRequest
from harness.wire.messages.clock import (
    BASELINE,
    CANDIDATE,
    Block,
    Floor,
    Measured,
    ProcessTimes,
    Taped,
)
from harness.wire.results.evaluation import ErrorReport, Verdict
from harness.wire.results.latency import Bound, Latency, Outcome, TimingMethod
from sessions.state.speed import speed_of
from suites import Task
from tests.support.timing.process_times import GPU, MEASURE, QUIET, TASK, process, times


def conclude(
    *processes: ProcessTimes,
    product: str = "",
    left_out: Mapping[tuple[str, str], int] | None = None,
    task: Task = TASK,
    **changes: Any,
) -> Timing:
    measured = msgspec.structs.replace(Measured(times=processes, floor=None), **changes)
    gpu_product = find_product(product) if product else None
    sides = {times.side for times in processes} | {BASELINE, CANDIDATE}
    measure = msgspec.structs.replace(MEASURE, task=task, sources=dict.fromkeys(sorted(sides), "x"))
    return conclude_timing(GPU, gpu_product, measure, measured, QUIET, Counter(left_out or {}))


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [(0.5, Outcome.FASTER), (2.0, Outcome.SLOWER), (1.0, Outcome.NOT_RESOLVED), (1.004, Outcome.SLOWER)],
)
def test_latency_has_ratio_interval_and_outcome(candidate: float, outcome: Outcome) -> None:
    (latency,) = conclude(*times(baseline=1.0, candidate=candidate)).latency
    assert latency.outcome is outcome
    assert latency.speedup == pytest.approx(1 / candidate)
    assert latency.ci is not None
    assert latency.ci[0] <= 1 / candidate <= latency.ci[1]
    assert (latency.baseline_ms, latency.candidate_ms, latency.pairs) == (1.0, candidate, 3)
    assert latency.candidate is not None
    assert (latency.candidate.samples, latency.candidate.processes, latency.candidate.peak_bytes) == (
        30,
        3,
        300,
    )
    assert (latency.against, latency.cache) == ("triton", "cold")


def latency_at(baseline: float, candidate: float) -> Latency:
    """Return the latency of two times on a device with a floor of 0.002 ms, so that 0.01 ms is short."""
    sides = ((BASELINE, baseline), (CANDIDATE, candidate))
    processes = [process(side, pair, side_ms) for pair in range(3) for side, side_ms in sides]
    return conclude(*processes, floor=Floor(empty_ms=0.002, copies=())).latency[0]


def test_case_that_is_short_on_both_sides_has_no_ratio() -> None:
    latency = latency_at(0.0099, 0.0090)
    assert (latency.outcome, latency.speedup, latency.ci) == (Outcome.TOO_SHORT, None, None)
    assert latency.floor_ms == 0.002
    assert latency_at(0.0101, 0.0101).bound is Bound.NONE


@pytest.mark.parametrize(
    ("baseline", "candidate", "bound", "outcome"),
    [(0.635, 0.0099, Bound.AT_LEAST, Outcome.FASTER), (0.0099, 0.635, Bound.AT_MOST, Outcome.SLOWER)],
)
def test_case_that_is_short_on_one_side_has_a_bound(
    baseline: float, candidate: float, bound: Bound, outcome: Outcome
) -> None:
    latency = latency_at(baseline, candidate)
    assert latency.speedup == pytest.approx(baseline / candidate)
    assert (latency.bound, latency.outcome) == (bound, outcome)
    assert latency.ci is not None


FLOOR = Floor(empty_ms=0.002, copies=())
EVENTS, GRAPH, PROFILER = TimingMethod.EVENTS, TimingMethod.GRAPH, TimingMethod.PROFILER
SLOW_HOST = "the host needs 8.0 ms"
NOTES: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"floor": FLOOR}, ""),
    (
        {},
        {"floor": Floor(empty_ms=0.00451, copies=()), "why_method": {"fp32": "no memory"}},
        "fp32: timed between events, which add 4.51 us to each call: no memory",
    ),
    (
        {"method": PROFILER},
        {"floor": FLOOR, "why_method": {"fp32": "in graphs of at most 32 calls: it ended"}},
        "fp32: timed by the profiler, which leaves out the time between launches: in graphs of at most 32 calls: it ended",
    ),
    (
        {"method": GRAPH, "ms": (0.0050, 0.0025)},
        {"floor": Floor(empty_ms=0.004, copies=(), graph_ms=0.001)},
        "an empty kernel's 1 us is in both times; without it the speedup would be 2.67x",
    ),
    (
        {"blocks": (Block(0.0, 1.0, tuple(9.0 + 0.2 * number for number in range(10))),)},
        {},
        "medians are known to ",
    ),
    ({"host_ms": 8.0, "method": EVENTS}, {}, SLOW_HOST),
    ({"host_ms": 8.0, "method": TimingMethod.BATCH}, {}, SLOW_HOST),
    ({"host_ms": 3.0, "method": EVENTS}, {}, ""),
    ({"host_ms": 8.0, "method": GRAPH}, {}, ""),
    ({"mhz": (1600, 1600)}, {}, "both sides ran at 1600 MHz, below the boost clock of H200 SXM, 1980 MHz"),
    ({"mhz": (1980, 1830)}, {}, "the baseline ran at 1980 MHz, the candidate at 1830 MHz"),
    ({"mhz": (1965, 1980)}, {}, ""),
    ({"mhz": (None, 1600)}, {}, ""),
]
"""Changes of the times of both sides, options of `conclude`, and how the note on the case begins; empty for no note."""


@pytest.mark.parametrize(("changes", "options", "begins"), NOTES)
def test_note_on_a_case_says_what_its_times_hold(
    changes: dict[str, Any], options: dict[str, Any], begins: str
) -> None:
    fields = dict(changes)
    baseline_ms, candidate_ms = fields.pop("ms", (9.0, 9.0))
    clocks = dict(zip((BASELINE, CANDIDATE), fields.pop("mhz", (None, None)), strict=True))
    sides = [
        msgspec.structs.replace(side, clock_mhz=clocks[side.side], **fields)
        for side in times(baseline=baseline_ms, candidate=candidate_ms)
    ]
    timing = conclude(*sides, product="H200 SXM" if "mhz" in changes else "", **options)
    (latency,) = timing.latency
    whole = [note for note in timing.notes if not note.startswith("timing was not whole")]
    assert [note.startswith(begins) for note in {*whole, *latency.notes}] == [True] * bool(begins)
    assert latency.method is changes.get("method", latency.method)


def test_means_over_exact_cases_have_intervals() -> None:
    first, second, third = (case.name for case in TASK.open_cases[:3])
    exact = (*times(first, baseline=1.0, candidate=0.5), *times(second, baseline=2.0, candidate=0.25))
    short = times(third, baseline=1.0, candidate=0.005)
    timing = conclude(*exact, *short, floor=Floor(empty_ms=0.002, copies=()))
    assert [latency.bound for latency in timing.latency] == [Bound.NONE, Bound.NONE, Bound.AT_LEAST]
    assert timing.speedup_ci == pytest.approx((5.0, 5.0), rel=1e-3)
    assert timing.speedup_geomean_ci == pytest.approx((4.0, 4.0), rel=1e-3)
    assert conclude(*short, floor=Floor(empty_ms=0.002, copies=())).speedup_ci is None


def test_weights_of_cases_give_a_time_weighted_mean() -> None:
    cases = [msgspec.structs.replace(case, weight=2.0 if case.exam is False else 0.0) for case in TASK.cases]
    cases[0] = msgspec.structs.replace(cases[0], weight=8.0)
    task = msgspec.structs.replace(TASK, cases=tuple(cases))
    first, second = (case.name for case in task.open_cases[:2])
    sheet = Sheet(task, "0")
    sheet.timing = conclude(
        *times(first, baseline=1.0, candidate=0.25), *times(second, baseline=2.0, candidate=4.0), task=task
    )
    evaluation = sheet.conclude(None)
    assert evaluation.speedup_weighted_ci == pytest.approx((10 / (2 + 4), 10 / (2 + 4)), rel=1e-3)
    whole = 8 + 2 * (len(task.open_cases) - 1)
    assert evaluation.case_weights[first] == pytest.approx(8 / whole)
    speed = speed_of(msgspec.structs.replace(evaluation, verdict=Verdict.CORRECT))
    assert speed is not None
    assert speed.value == pytest.approx(whole / (2 + 4 + 2 * (len(task.open_cases) - 2)), rel=1e-3)


@pytest.mark.parametrize(
    ("event", "wall", "word"),
    [
        (1.0, None, "bound"),
        (1.0, 1.05, "wall"),
        (1.0, 0.9, "wall"),
        (1.0, 1.2, "bound"),
        (0.01, 0.01 + 0.9 * CONFIRMED_MS, "wall"),
        (0.01, 0.01 + 1.1 * CONFIRMED_MS, "bound"),
        (1.0, 5.0, "bound"),  # a guest reports a fifth of the true time
    ],
)
def test_reported_time_is_confirmed_by_the_watch(event: float, wall: float | None, word: str) -> None:
    assert confirm_time(event, wall) == word


def test_reported_time_that_the_watch_contradicts_is_dropped() -> None:
    watched = [msgspec.structs.replace(side, wall_ms=1.0) for side in times(baseline=1.0, candidate=0.5)]
    assert conclude(*watched).latency == ()
    assert "1.0000 ms on the clock's own watch" in conclude(*watched).detail
    short = [msgspec.structs.replace(side, wall_ms=0.05) for side in times(baseline=0.02, candidate=0.01)]
    assert conclude(*short).latency[0].confirmed == "bound"  # the host's time for a launch


def test_time_of_a_tape_needs_no_watch() -> None:
    taped = [msgspec.structs.replace(side, taped=True) for side in times(baseline=1.0, candidate=0.5)]
    (latency,) = conclude(*taped).latency
    assert (latency.confirmed, latency.wall_ms) == ("tape", None)


def test_failed_baseline_leaves_candidate_correct_with_reason() -> None:
    timing = conclude(problem="case fp32: the baseline could not be timed: boom")
    assert (timing.error, timing.ok) == (None, None)
    assert "the baseline could not be timed: boom" in timing.detail


def test_times_before_a_problem_are_kept_with_a_note() -> None:
    timing = conclude(*times(baseline=1.0, candidate=0.5), problem="full")
    assert timing.ok is True
    assert timing.notes == (
        f"timing was not whole: {len(TASK.open_cases) - 1} of {len(TASK.open_cases)} cases have no time: full",
    )
    assert timing.why_not_timed == "full"
    every = [side for case in TASK.open_cases for side in times(case.name, baseline=1.0, candidate=0.5)]
    whole = conclude(*every, problem="full")
    assert whole.why_not_timed == ""
    assert whole.notes == ("timing was not finished, though every case has a latency: full",)


def test_note_counts_disturbed_samples_of_untimed_case() -> None:
    first, second = (case.name for case in TASK.open_cases[:2])
    left_out = {(first, CANDIDATE): 900, (second, BASELINE): 7, (second, CANDIDATE): 5}
    disturbed = "12 samples were disturbed by a change of the clock or by others on the device"
    timing = conclude(*times(first, baseline=1.0, candidate=0.5), left_out=left_out)
    count = len(TASK.open_cases)
    assert timing.notes == (f"timing was not whole: {count - 1} of {count} cases have no time: {disturbed}",)
    timing = conclude(left_out={(second, BASELINE): 7, (second, CANDIDATE): 5})
    assert timing.detail == f"not timed: {disturbed}"


def test_refused_candidate_has_no_latency() -> None:
    error = ErrorReport(kind="mismatch", message="wrong")
    timing = conclude(*times(baseline=1.0, candidate=0.5), error=error)
    assert (timing.latency, timing.error, timing.ok) == ((), error, False)


def test_known_product_has_the_share_of_the_fastest_measured_copy() -> None:
    floor = Floor(empty_ms=0.002, copies=((1 << 20, 2e12, 5e12), (1 << 30, 4e12, 4e12)))
    (latency,) = conclude(*times(baseline=1.0, candidate=0.5), product="H200 SXM", floor=floor).latency
    assert latency.efficiency is not None
    assert latency.efficiency.io_measured == pytest.approx(latency.efficiency.bytes_per_s / 4e12)
    assert conclude(*times(baseline=1.0, candidate=0.5)).latency[0].efficiency is None


@pytest.mark.parametrize("timed_cases", [1, 4, 5])
def test_speedup_of_partly_timed_task_says_how_many_cases_it_covers(timed_cases: int) -> None:
    names = [case.name for case in TASK.open_cases]
    sheet = Sheet(TASK, "0")
    sheet.timing = conclude(
        *(side for name in names[:timed_cases] for side in times(name, baseline=1.0, candidate=0.5))
    )
    evaluation = sheet.conclude(None)
    assert len(evaluation.latency) == timed_cases
    assert evaluation.not_timed == tuple(names[timed_cases:])
    assert (evaluation.speedup, evaluation.speedup_geomean) == (pytest.approx(2.0), pytest.approx(2.0))
    assert evaluation.speedup_cases == timed_cases
    covered = f"{timed_cases} of {len(names)} cases" if timed_cases < len(names) else ""
    assert evaluation.in_part == covered


@pytest.mark.parametrize(
    ("tape", "compiled", "words", "basis"),
    [
        (Taped("fp32", launches=2, code=("a",)), {"a", "b"}, "as compiled from the source", "proof"),
        (Taped("fp32", launches=2, code=("a", "x")), {"a"}, "not among those", "evidence"),
        (Taped("fp32", why_not="host code"), {"a"}, "none: host code", "evidence"),
    ],
)
def test_tape_is_proof_only_with_binaries_of_the_source(
    tape: Taped, compiled: set[str], words: str, basis: str
) -> None:
    (fact,) = tape_facts(Measured(times=(), floor=None, tapes=(tape,)), compiled)
    assert words in fact.value
    assert fact.basis == basis


def test_exam_is_timed_with_different_values() -> None:
    def seed(*, exam: bool) -> int:
        request = TrialRequest(TASK, "", (), None, 5, (), Exam() if exam else Attempt(), USUAL)
        return request.timing_seed

    assert seed(exam=False) == 5
    assert seed(exam=True) == derive(5, "confirm") != 5
