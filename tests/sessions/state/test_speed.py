"""The speed of an attempt: one number over all open cases, its sign, its interval and its words."""

from __future__ import annotations

import math

import msgspec
import pytest

from harness import Evaluation, Latency, Outcome, Verdict
from harness.wire.results.latency import Bound
from harness.wire.results.provenance import Provenance
from sessions.state.cases import gain, is_apart
from sessions.state.figure_words import narrow_ratio, ratio_words
from sessions.state.speed import Speed, missing_speed, speed_of
from sessions.state.state import AttemptState
from tests.support.judge.judged_attempts import judged_attempt
from tests.support.sessions import story


def case(name: str, ratio: float | None, bound: Bound = Bound.NONE, *, half: float | None = 0.02) -> Latency:
    ci = None if ratio is None or half is None else (ratio * (1 - half), ratio * (1 + half))
    outcome = Outcome.TOO_SHORT if ratio is None else Outcome.FASTER
    return Latency("0", name, ratio or 1.0, 1.0, ratio, ci, "tape", outcome, bound=bound)


def timed(*latency: Latency, not_timed: tuple[str, ...] = ()) -> Evaluation:
    judged = story.evaluation(Verdict.CORRECT)
    return msgspec.structs.replace(judged, latency=latency, not_timed=not_timed)


def attempt(evaluation: Evaluation) -> AttemptState:
    return judged_attempt(evaluation)


def speed(*latency: Latency, not_timed: tuple[str, ...] = ()) -> Speed:
    return speed_of(timed(*latency, not_timed=not_timed))


def test_exact_cases_give_a_geometric_mean_with_its_interval() -> None:
    found = speed(case("a", 2.0), case("b", 4.5))
    assert found.value == pytest.approx(3.0)
    assert str(found) == found.words
    assert found.figure == "3.00x"
    half = math.log(1.02 / 0.98) / 2 / math.sqrt(2)
    assert found.interval == pytest.approx((3 * math.exp(-half), 3 * math.exp(half)))
    assert found.is_gain


def test_interval_of_the_mean_over_all_cases_together_replaces_those_of_the_cases() -> None:
    cases = (case("a", 2.0), case("b", 4.5))
    whole = speed_of(msgspec.structs.replace(timed(*cases), speedup_geomean_ci=(2.7, 3.2)))
    assert whole.interval == pytest.approx((2.7, 3.2))
    short = timed(*cases, case("short", None), case("launch", 6.0, Bound.AT_LEAST, half=0.0))
    partly = speed_of(msgspec.structs.replace(short, speedup_geomean_ci=(2.7, 3.2)))
    assert (partly.exact.low, partly.exact.high) == pytest.approx((2.7, 3.2))
    assert (partly.low, partly.high) == pytest.approx(((2.7**2 * 6) ** 0.25, (3.2**2 * 6) ** 0.25))


def test_case_without_a_ratio_counts_as_one_and_the_exact_cases_stand_beside() -> None:
    found = speed(case("a", 4.0), case("short", None), not_timed=("lost",))
    assert found.value == pytest.approx(4 ** (1 / 3))
    assert (found.cases, found.all_cases) == (1, 3)
    assert found.exact_words.startswith("4.00x [3.92, 4.08] exact, 1 of 3")


def test_cases_with_weights_count_by_their_time() -> None:
    weights = {"decode": 0.8, "prefill": 0.1, "short": 0.1}
    whole = msgspec.structs.replace(
        timed(case("decode", 2.0), case("prefill", 0.5), not_timed=("short",)),
        case_weights=weights,
        speedup_geomean_ci=(0.9, 1.1),
        speedup_weighted_ci=(1.4, 1.6),
    )
    weighted = speed_of(whole)
    assert weighted.value == pytest.approx(1 / (0.4 + 0.2 + 0.1))
    assert weighted.interval == pytest.approx((1 / (0.9 / 1.4 + 0.1), 1 / (0.9 / 1.6 + 0.1)))
    assert weighted.words == "1.43x [1.35, 1.51] time-weighted; 1.50x [1.40, 1.60] exact, 2 of 3"
    launch = msgspec.structs.replace(
        whole,
        latency=(case("decode", 2.0), case("prefill", 10.0, Bound.AT_LEAST, half=0.0)),
        speedup_weighted_ci=(1.8, 2.2),
    )
    bounded = speed_of(launch)
    assert bounded.figure == ">= 1.96x"
    assert bounded.low == pytest.approx(1 / (0.8 / 1.8 + 0.01 + 0.1))


def test_lower_bound_counts_with_its_value_and_takes_the_interval_away() -> None:
    found = speed(case("a", 1.3), case("b", 1.3), case("launch", 6.0, Bound.AT_LEAST))
    assert found.value == pytest.approx((1.3 * 1.3 * 6) ** (1 / 3))
    assert found.interval is None
    assert found.words.startswith(">= 2.16x; 1.30x [")
    assert found.words.endswith("exact, 2 of 3")
    assert found.is_gain


def test_lower_bound_alone_makes_no_gain() -> None:
    estimate = speed(case("a", 1.0), case("launch", 12.0, Bound.AT_LEAST))
    assert estimate.low > 1.0
    assert not estimate.is_gain, "the exact case is no faster"
    assert not speed(case("launch", 12.0, Bound.AT_LEAST)).is_gain


@pytest.mark.parametrize(("ratio", "value"), [(0.64, 0.8), (1.44, 1.0)])
def test_upper_bound_counts_with_at_most_one(ratio: float, value: float) -> None:
    found = speed(case("a", 1.0), case("short baseline", ratio, Bound.AT_MOST))
    assert found.value == pytest.approx(value)
    assert found.figure == f"<= {value:.2f}x"
    assert not found.is_gain


def test_bounds_of_both_kinds_have_a_sign_of_their_own_and_are_no_gain() -> None:
    found = speed(case("a", 9.0, Bound.AT_LEAST), case("b", 0.9, Bound.AT_MOST))
    assert found.figure == "~ 2.85x"
    assert not found.is_gain


@pytest.mark.parametrize(
    ("value", "sign", "words"),
    [
        (1.286, "<=", "<= 1.29x"),
        (1.29, "<=", "<= 1.29x"),
        (1.281, "<=", "<= 1.29x"),
        (2.039, ">=", ">= 2.03x"),
        (2.03, ">=", ">= 2.03x"),
        (131.7, ">=", ">= 131x"),
        (131.2, "<=", "<= 132x"),
        (1.239, "", "1.24x"),
    ],
)
def test_lower_bounds_are_rounded_down_and_upper_bounds_up(value: float, sign: str, words: str) -> None:
    assert ratio_words(value, sign) == words


@pytest.mark.parametrize(
    ("value", "sign", "words"),
    [(1.29, "<=", "<=1.29x"), (37.48, ">=", ">=37.4x"), (37.42, "<=", "<=37.5x"), (1234.0, ">=", ">=1234x")],
)
def test_bound_in_a_narrow_cell_stays_true(value: float, sign: str, words: str) -> None:
    assert narrow_ratio(value, sign, 7) == words


def test_case_without_an_interval_leaves_the_speed_without_one() -> None:
    found = speed(case("a", 2.0), case("b", 2.0, half=None))
    assert found.interval is None
    assert found.words == "2.00x"
    assert not found.is_gain, "nothing says that the interval is above 1"


def test_gain_is_the_ratio_of_two_speeds_over_the_same_cases() -> None:
    before = attempt(timed(case("a", 2.0)))
    assert gain(attempt(timed(case("a", 3.0))), before) == pytest.approx(0.5)
    assert gain(attempt(story.evaluation(Verdict.WRONG)), before) is None
    assert gain(attempt(timed(case("a", 2.0), case("b", 2.0))), before) is None


def test_gain_leaves_out_cases_that_only_one_side_timed_exactly() -> None:
    before = attempt(timed(case("a", 2.0), case("b", 50.0), case("c", 4.0)))
    disturbed = timed(case("a", 2.0), not_timed=("b", "c"))
    assert gain(attempt(disturbed), before) == pytest.approx(0.0), "nothing says that it is slower"
    bounded = timed(case("a", 3.0), case("b", 90.0, Bound.AT_LEAST), case("c", 4.0))
    assert gain(attempt(bounded), before) == pytest.approx(1.5**0.5 - 1)
    assert gain(attempt(timed(case("a", None), not_timed=("b", "c"))), before) is None
    both = attempt(timed(case("a", 2.0), case("b", 20.0, Bound.AT_LEAST), case("c", 4.0)))
    assert gain(attempt(bounded), both) == pytest.approx(1.5 ** (1 / 3) - 1), "a bound shows no change"


def test_attempts_with_another_driver_or_product_have_no_gain() -> None:
    h100 = Provenance(product="H100", driver="570.86.15")
    first, same, other = (
        attempt(msgspec.structs.replace(timed(case("a", ratio)), provenance=provenance))
        for ratio, provenance in (
            (2.0, h100),
            (3.0, h100),
            (3.0, msgspec.structs.replace(h100, product="H200")),
        )
    )
    assert gain(same, first) == pytest.approx(0.5)
    assert not is_apart(same, first)
    assert gain(other, first) is None
    assert is_apart(other, first)
    assert not is_apart(attempt(story.evaluation(Verdict.WRONG)), first), "it has no figure to compare"


def test_what_was_not_timed_has_no_speed_but_a_reason() -> None:
    failed = story.evaluation(Verdict.WRONG)
    assert speed_of(failed) is None
    assert missing_speed(failed) == "timing not reached, the judge stopped at stage execution"
    short = timed(msgspec.structs.replace(case("a", None), floor_ms=0.0036))
    assert speed_of(short) is None
    assert missing_speed(short).endswith("both sides take about as long as an empty kernel (3.60 us)")
    assert missing_speed(timed(case("a", 2.0))) == ""
