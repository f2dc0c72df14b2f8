"""Rank of attempts: the verdict, the speed; without timing the traffic of cases that matter, and figures of the binaries."""

from __future__ import annotations

import math

import msgspec
import pytest

from harness import Evaluation, Verdict
from harness.wire.results.evaluation import FullSize, GridFit
from sessions.state.ranking import FIGURES, Rank, improvable, is_chosen, rank, traffic_excess, why_below
from tests.support.judge.evaluations import traffic
from tests.support.sessions.measured_sessions import latency
from tests.support.sessions.story import evaluation

CORRECT = evaluation(Verdict.CORRECT)
LONG, SHORT = 900_000_000, 1_000_000
"""Needed bytes at `gpu` sizes of a case that takes longer than its launch, and of one that does not."""


def counted(**cases: tuple[float, int]) -> Evaluation:
    """Return a correct evaluation: by case requested over needed bytes, and the needed bytes at `gpu` sizes."""
    return msgspec.structs.replace(
        CORRECT,
        traffic=tuple(
            traffic(case, int(excess * 1000) - 500, 500, minimal=1000) for case, (excess, _) in cases.items()
        ),
        full_sizes=tuple(
            FullSize(case, {"n": 8}, needed, is_long=needed > SHORT) for case, (_, needed) in cases.items()
        ),
    )


def with_kernel(base: Evaluation, **fields: object) -> Evaluation:
    kernel = msgspec.structs.replace(CORRECT.resources["gfx942"][0], case="long", **fields)
    return msgspec.structs.replace(base, resources={"gfx942": (kernel,)})


LEAN = counted(long=(1.1, LONG))


def test_excess_of_traffic_is_weighted_by_needed_bytes() -> None:
    assert traffic_excess(counted(long=(1.1, LONG))) == pytest.approx(1.1)
    assert traffic_excess(counted(long=(1.0, 9), short=(3.0, 1))) == pytest.approx(1.2)
    unknown = msgspec.structs.replace(LEAN, traffic=(traffic("long", 500, 500),))
    assert traffic_excess(unknown) is None


def test_excesses_within_five_percent_tie_and_wide_loads_decide() -> None:
    slightly_worse, much_worse = counted(long=(1.11, LONG)), counted(long=(1.3, LONG))
    narrow, wide = {"16": 8}, {"128": 4, "16": 9}
    assert rank(with_kernel(slightly_worse, load_widths=wide)) > rank(with_kernel(LEAN, load_widths=narrow))
    assert rank(with_kernel(much_worse, load_widths=wide)) < rank(with_kernel(LEAN, load_widths=narrow))


def test_occupancy_beyond_four_waves_and_small_differences_of_the_grid_are_no_gain() -> None:
    def fit(workgroups: int) -> GridFit:
        return GridFit("long", (workgroups, 1, 1), workgroups, 304, 2, 1, 0.0, 0.0, 0, 8, 40, 38)

    assert rank(with_kernel(LEAN, occupancy=8.0)) == rank(with_kernel(LEAN, occupancy=4.0))
    assert rank(with_kernel(LEAN, occupancy=4.0)) > rank(with_kernel(LEAN, occupancy=2.0))
    assert rank(with_kernel(LEAN, fits=(fit(64),))) < rank(with_kernel(LEAN, fits=(fit(304),)))
    assert rank(with_kernel(LEAN, fits=(fit(300),))) == rank(with_kernel(LEAN, fits=(fit(290),)))


def test_launches_decide_last() -> None:
    """A split sum fills the device by a second launch."""
    two = msgspec.structs.replace(LEAN, traffic=(msgspec.structs.replace(LEAN.traffic[0], launches=2),))
    assert rank(with_kernel(two)) < rank(with_kernel(LEAN))
    assert rank(with_kernel(two, occupancy=4.0)) > rank(with_kernel(LEAN, occupancy=2.0))


def test_no_other_figure_breaks_a_tie_of_measured_speeds() -> None:
    fast = evaluation(Verdict.CORRECT, speedup=1.5)
    spilling = msgspec.structs.replace(fast, resources=with_spills(3).resources)
    assert rank(spilling) == rank(fast)
    assert why_below(spilling, fast) == "no figure differs, and the earlier attempt is kept"


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
        (counted(small=(2.0, LONG)), counted(small=(3.0, LONG))),
        (with_spills(0), with_spills(3)),
    ],
)
def test_better_evaluation_has_a_higher_rank(better: Evaluation, worse: Evaluation) -> None:
    assert rank(better) > rank(worse)


def test_rank_of_unknown_facts_is_not_nan() -> None:
    bare = msgspec.structs.replace(CORRECT, traffic=(), resources={})
    assert not any(math.isnan(part) for part in rank(bare))
    assert rank(bare) == rank(bare)


def test_reason_names_the_first_figure_that_differs() -> None:
    assert list(FIGURES) == [name for name in Rank._fields if name not in ("standing", "stages_passed")]
    narrow = with_kernel(LEAN, load_widths={"32": 8}, occupancy=2.0)
    wide = with_kernel(LEAN, load_widths={"128": 8}, occupancy=4.0)
    assert why_below(narrow, wide) == "widest loads, geometric mean of the kernels: 32 against 128 bits"
    assert why_below(counted(long=(1.3, LONG)), LEAN) == "1.30 against 1.10 times the needed bytes"
    fast, slow = (evaluation(Verdict.CORRECT, speedup=ratio) for ratio in (1.44, 1.31))
    assert why_below(slow, fast) == "1.31x against 1.44x"
    assert why_below(LEAN, fast) == "it has no ratio to the baseline"
    assert why_below(fast, fast) == "no figure differs, and the earlier attempt is kept"
    assert why_below(with_spills(3), with_spills(0)) == "spilled registers: 3 against 0"


def test_improvable_figures_are_those_that_are_not_at_their_best() -> None:
    perfect = with_kernel(counted(long=(1.0, LONG)), load_widths={"128": 8}, occupancy=8.0)
    assert improvable(perfect) == []
    poor = with_kernel(LEAN, load_widths={"32": 8}, occupancy=2.0, vgpr_spills=5)
    assert improvable(poor) == [
        "1.10 times the needed bytes",
        "spilled registers: 5",
        "widest loads, geometric mean of the kernels: 32 bits",
        "occupancy 2",
    ]


def test_a_binary_of_a_short_and_a_long_case_counts_for_both() -> None:
    fits = tuple(GridFit(case, (1, 1, 1), 1, 304, 2, 1, 0.0, 0.0, 0, 8, 40, 38) for case in ("tiny", "long"))
    both = counted(tiny=(1.0, SHORT), long=(1.0, LONG))
    kernel = msgspec.structs.replace(
        CORRECT.resources["gfx942"][0], case="tiny", load_widths={"32": 1}, fits=fits
    )
    assert rank(msgspec.structs.replace(both, resources={"gfx942": (kernel,)})).load_bits == 5.0


def test_the_chosen_config_is_known_by_its_text() -> None:
    chosen = "BLOCK: 64, num_warps: 4, maxnreg: None"
    kernel = msgspec.structs.replace(CORRECT.resources["gfx942"][0], autotune_index=1, autotune_config=chosen)
    timed = latency(kernel.case, 1.0, 2.0)
    judged = msgspec.structs.replace(
        CORRECT, latency=(msgspec.structs.replace(timed, configs={kernel.kernel: chosen}),)
    )
    assert is_chosen(judged, kernel, kernel.case)
    rejected = msgspec.structs.replace(kernel, autotune_config=chosen.replace("64", "32"))
    assert is_chosen(judged, rejected, kernel.case) is False
    assert is_chosen(CORRECT, kernel, kernel.case) is None
