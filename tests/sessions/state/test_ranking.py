"""Rank of attempts: the verdict, the speed; without timing estimates that matter, figures of the binaries, length."""

from __future__ import annotations

import math

import msgspec
import pytest

from harness import Estimate, Evaluation, Verdict
from harness.wire.results.evaluation import GridFit
from sessions.state.ranking import FIGURES, Rank, estimated_slowdown, improvable, rank, why_below
from tests.support.sessions.story import evaluation

CORRECT = evaluation(Verdict.CORRECT)


def bound(case: str, low_us: float, high_us: float, shared_us: float | None = None) -> Estimate:
    return Estimate(
        "gfx942", case, {"n": 8}, low_us, high_us, "memory", "memory", "peaks", shared_us=shared_us
    )


def estimated(*estimates: Estimate) -> Evaluation:
    return msgspec.structs.replace(CORRECT, estimate=estimates)


def with_kernel(base: Evaluation, **fields: object) -> Evaluation:
    kernel = msgspec.structs.replace(CORRECT.resources["gfx942"][0], case="long", **fields)
    return msgspec.structs.replace(base, resources={"gfx942": (kernel,)})


LONG = estimated(bound("long", 100.0, 110.0))


def test_long_cases_decide_and_launch_bound_cases_do_not() -> None:
    assert estimated_slowdown(
        estimated(bound("long", 100.0, 110.0), bound("tiny", 0.1, 9.0))
    ) == pytest.approx(1.1)
    two = estimated(bound("long", 90.0, 90.0), bound("short", 10.0, 30.0))
    assert estimated_slowdown(two) == pytest.approx(1.2), "time counts, not the number of cases"
    assert estimated_slowdown(estimated(bound("tiny", 0.1, 0.2))) == pytest.approx(2.0), (
        "nothing else is known"
    )


def test_reads_that_the_cache_answers_cost_nothing() -> None:
    assert estimated_slowdown(estimated(bound("long", 100.0, 400.0, shared_us=120.0))) == pytest.approx(1.2)


def test_estimates_within_five_percent_tie_and_wide_loads_decide() -> None:
    slightly_worse = estimated(bound("long", 100.0, 111.0))
    narrow, wide = {"16": 8}, {"128": 4, "16": 9}
    assert rank(with_kernel(slightly_worse, load_widths=wide)) > rank(with_kernel(LONG, load_widths=narrow))
    much_worse = estimated(bound("long", 100.0, 130.0))
    assert rank(with_kernel(much_worse, load_widths=wide)) < rank(with_kernel(LONG, load_widths=narrow))


def test_occupancy_beyond_four_waves_and_small_differences_of_the_grid_are_no_gain() -> None:
    def fit(workgroups: int) -> GridFit:
        return GridFit("long", (workgroups, 1, 1), workgroups, 304, 2, 1, 0.0, 0.0, 0, 8, 40, 38)

    assert rank(with_kernel(LONG, occupancy=8.0)) == rank(with_kernel(LONG, occupancy=4.0))
    assert rank(with_kernel(LONG, occupancy=4.0)) > rank(with_kernel(LONG, occupancy=2.0))
    assert rank(with_kernel(LONG, fits=(fit(64),))) < rank(with_kernel(LONG, fits=(fit(304),)))
    assert rank(with_kernel(LONG, fits=(fit(300),))) == rank(with_kernel(LONG, fits=(fit(290),)))


def test_no_estimate_breaks_a_tie_of_measured_speeds() -> None:
    fast = evaluation(Verdict.CORRECT, speedup=1.5)
    spilling = msgspec.structs.replace(
        fast, resources=with_spills(3).resources, not_sampled={"heavy": "long"}
    )
    assert rank(spilling) == rank(fast)
    assert why_below(spilling, fast) == "no figure differs, and the earlier attempt is kept"


def with_estimate(high_us: float) -> Evaluation:
    bound = Estimate("gfx942", "small", {"n": 8}, 10.0, high_us, "memory", "memory", "peaks")
    return msgspec.structs.replace(CORRECT, estimate=(bound,))


def with_spills(count: int) -> Evaluation:
    kernel = msgspec.structs.replace(CORRECT.resources["gfx942"][0], vgpr_spills=count)
    return msgspec.structs.replace(CORRECT, resources={"gfx942": (kernel,)})


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (CORRECT, evaluation(Verdict.WRONG)),
        (evaluation(Verdict.WRONG), evaluation(Verdict.CALL_ERROR)),
        (evaluation(Verdict.CALL_ERROR), evaluation(Verdict.INFRA_ERROR)),
        (evaluation(Verdict.CORRECT, speedup=1.5), evaluation(Verdict.CORRECT, speedup=1.4)),
        (evaluation(Verdict.CORRECT, speedup=0.5), CORRECT),
        (with_estimate(20.0), with_estimate(30.0)),
        (with_estimate(20.0), CORRECT),
        (with_spills(0), with_spills(3)),
    ],
)
def test_better_evaluation_has_a_higher_rank(better: Evaluation, worse: Evaluation) -> None:
    assert rank(better) > rank(worse)


def test_less_traffic_ranks_higher_without_timing() -> None:
    lean = msgspec.structs.replace(CORRECT.traffic[0], requested_read_bytes=64)
    assert rank(msgspec.structs.replace(CORRECT, traffic=(lean,))) > rank(CORRECT)


def test_rank_of_unknown_facts_is_not_nan() -> None:
    bare = msgspec.structs.replace(CORRECT, traffic=(), resources={})
    assert not any(math.isnan(part) for part in rank(bare))
    assert rank(bare) == rank(bare)


def test_attempt_whose_heavy_case_could_not_be_sampled_does_not_win_by_its_others() -> None:
    sampled = estimated(bound("heavy", 100.0, 130.0), bound("light", 10.0, 12.0))
    unsampled = estimated(bound("heavy", 0.2, 0.2), bound("light", 10.0, 10.0))
    unsampled = msgspec.structs.replace(unsampled, not_sampled={"heavy": "a program is too long to sample"})
    assert rank(sampled) > rank(unsampled)


def test_reason_names_the_first_figure_that_differs() -> None:
    assert list(FIGURES) == [name for name in Rank._fields if name not in ("standing", "stages_passed")]
    narrow = with_kernel(LONG, load_widths={"32": 8}, vgpr_spills=9)
    wide = with_kernel(LONG, load_widths={"128": 8}, vgpr_spills=0)
    assert why_below(narrow, wide) == "widest loads of 32 against 128 bits"
    much_worse = estimated(bound("long", 100.0, 130.0))
    assert why_below(much_worse, LONG) == "1.30 against 1.10 times the least time"
    unsampled = msgspec.structs.replace(LONG, not_sampled={"heavy": "a program is too long to sample"})
    assert why_below(unsampled, LONG) == "cases without an estimate at the full size: 1 against 0"
    fast, slow = (evaluation(Verdict.CORRECT, speedup=ratio) for ratio in (1.44, 1.31))
    assert why_below(slow, fast) == "1.31x against 1.44x"
    assert why_below(LONG, fast) == "it has no ratio to the baseline"
    assert why_below(fast, fast) == "no figure differs, and the earlier attempt is kept"
    assert why_below(with_spills(3), with_spills(0)) == "spilled registers: 3 against 0"


def test_improvable_figures_are_those_that_are_not_at_their_best() -> None:
    perfect = with_kernel(estimated(bound("long", 100.0, 100.0)), load_widths={"128": 8}, occupancy=8.0)
    assert improvable(perfect) == []
    poor = with_kernel(LONG, load_widths={"32": 8}, occupancy=2.0, vgpr_spills=5)
    assert improvable(poor) == [
        "1.10 times the least time",
        "widest loads of 32 bits",
        "spilled registers: 5",
        "occupancy 2",
    ]


def test_a_binary_of_a_short_and_a_long_case_counts_for_both() -> None:
    fits = tuple(GridFit(case, (1, 1, 1), 1, 304, 2, 1, 0.0, 0.0, 0, 8, 40, 38) for case in ("tiny", "long"))
    both = estimated(bound("tiny", 0.1, 0.1), bound("long", 100.0, 100.0))
    kernel = msgspec.structs.replace(
        CORRECT.resources["gfx942"][0], case="tiny", load_widths={"32": 1}, fits=fits
    )
    assert rank(msgspec.structs.replace(both, resources={"gfx942": (kernel,)})).load_bits == 5.0
