"""Stop rules: which attempts end an instance, and with which words."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine.prompting.figures import roof_words
from engine.run.stop_rules import stop_of
from harness import Evaluation, Verdict
from harness.hardware.product_tables import find_product
from harness.stages.timing.efficiency import case_efficiency
from harness.wire.messages.clock import Floor
from harness.wire.results.latency import Bound, Efficiency, Latency, Outcome
from harness.wire.results.provenance import Provenance
from sessions import Home, fold
from sessions.events import DecisionMade, EndReason, Origin
from sessions.settings import StopRules
from sessions.state.cases import case_rows
from sessions.state.judged import is_at_roof
from sessions.state.state import AttemptState
from suites import load_task
from suites.task import RecordedScript
from tests.support.engine.engines import endings, plan, play, scripted_model
from tests.support.judge.evaluations import correct, failed
from tests.support.judge.judged_attempts import judge_again, judged_attempt
from tui.print.narrate import Narrator

NO_GAIN = StopRules(without_gain=2)


def attempts(*speedups: float | None, origin: Origin = Origin.OPTIMIZE) -> list[AttemptState]:
    """Return correct attempts with these speedups; `None` is a wrong attempt."""
    made = []
    for number, speedup in enumerate(speedups, start=1):
        evaluation = failed() if speedup is None else correct(speedup=speedup)
        attempt = judged_attempt(evaluation, f"vector_add#1/{number}")
        attempt.origin, attempt.judged_seq = origin, number
        made.append(attempt)
    return made


def case(
    io: float | None,
    *,
    mfu: float | None = None,
    suspect: str = "",
    short: bool = False,
    at_least: bool = False,
) -> Latency:
    """Return a timed case at this share of the fastest copy and of a measured matrix product."""
    return Latency(
        device="0",
        case="a",
        baseline_ms=1.0,
        candidate_ms=1.0,
        speedup=None if short else 1.0,
        ci=None,
        confirmed="tape",
        outcome=Outcome.TOO_SHORT if short else Outcome.NOT_RESOLVED,
        bound=Bound.AT_LEAST if at_least else Bound.NONE,
        efficiency=Efficiency(
            product="H200", bytes=1, flops=1, dtype="float32", bytes_per_s=1.0, flops_per_s=1.0,
            io_utilisation=None, mfu=None, io_measured=io, mfu_measured=mfu, suspect=suspect,
        ),
    )  # fmt: skip


def timed(*cases: Latency, not_timed: tuple[str, ...] = ()) -> Evaluation:
    return msgspec.structs.replace(correct(speedup=1.0), latency=cases, not_timed=not_timed)


@pytest.mark.parametrize(
    ("speedups", "ends"),
    [
        ((1.0, 1.5), False),
        ((1.0, 1.5, 1.4), False),
        ((1.0, 1.5, 1.4, 1.2), True),
        ((1.0, 1.5, 1.514, 1.51), True),
        ((1.0, 1.5, 1.4, 1.6, 1.6), False),
        ((1.5, None, 1.4, None, None), False),
        ((1.5, None, 1.4, None, 1.3), True),
    ],
)
def test_two_correct_attempts_without_a_gain_end_the_instance(
    speedups: tuple[float | None, ...], *, ends: bool
) -> None:
    stop = stop_of(NO_GAIN, attempts(*speedups))
    assert (stop is not None) is ends
    assert stop is None or stop.reason is EndReason.NO_GAIN


def test_a_call_at_the_roof_of_what_it_reads_and_writes_ends_the_instance(tmp_path: Path) -> None:
    """A recorded task: its outputs alone would be 1 % of a copy."""
    task = msgspec.structs.replace(
        load_task("softmax"), script=RecordedScript("wavedeck_call(call)"), folder=tmp_path
    )
    floor = Floor(empty_ms=0.002, copies=((1 << 30, 4e12, 6e12),))
    (tmp_path / "cost.py").write_text(
        "from suites import Cost\n\n\ndef cost(sizes, dtype):\n"
        "    return Cost(flops=0, minimal_bytes=1 << 20, estimated_bytes=1 << 30)\n"
    )
    used = case_efficiency(task, task.cases[0], find_product("H200 SXM"), (1 << 30) / 3.9e12 * 1e3, floor)
    evaluation = timed(msgspec.structs.replace(case(None), efficiency=used))
    assert is_at_roof(evaluation)
    assert roof_words(case_rows(evaluation)[0]) == "98% of a copy"


def test_attempts_made_at_once_are_one_round() -> None:
    round_of_four = attempts(2.0, 1.0, 1.0, 1.0, 1.5, 1.5, 1.5)
    assert stop_of(NO_GAIN, round_of_four, lanes=4) is None
    assert stop_of(NO_GAIN, [*round_of_four, *attempts(*[1.0] * 9)], lanes=4) is not None


def test_variant_of_a_sweep_is_no_round_but_its_gain_counts() -> None:
    assert stop_of(NO_GAIN, attempts(*[1.0] * 9, origin=Origin.TUNE)) is None
    swept = [*attempts(1.0), *attempts(2.0, origin=Origin.TUNE), *attempts(1.5, 1.5)]
    for number, attempt in enumerate(swept):
        attempt.judged_seq = number
    assert stop_of(NO_GAIN, swept) is not None


def test_attempts_before_a_new_driver_are_not_compared_with_those_after_it() -> None:
    judged = attempts(2.0, 1.5, 1.0)
    for attempt, driver in zip(judged, ("1", "2", "2"), strict=True):
        assert attempt.evaluation is not None
        provenance = Provenance(driver=driver)
        judge_again(attempt, msgspec.structs.replace(attempt.evaluation, provenance=provenance))
    assert stop_of(NO_GAIN, judged) is None


def test_untimed_attempts_meet_no_rule() -> None:
    untimed = attempts(1.0, 1.0, 1.0, 1.0)
    for attempt in untimed:
        judge_again(attempt, correct())
    rules = StopRules(speedup=0.1, without_gain=1, at_roof=True)
    assert stop_of(rules, untimed) is None


def test_speedup_is_reached_by_an_exact_one_that_no_person_rejected() -> None:
    wanted, made = StopRules(speedup=2.0), attempts(1.0)
    assert stop_of(wanted, made) is None
    judge_again(made[0], correct(speedup=2.5))
    assert stop_of(wanted, made) is not None, "rules read a new evaluation"
    made[0].decision = DecisionMade(attempt=made[0].attempt, accepted=False, why="reads past the end")
    assert stop_of(wanted, made) is None
    made[0].decision = None
    upper = msgspec.structs.replace(case(0.5), bound=Bound.AT_MOST)
    judge_again(made[0], msgspec.structs.replace(correct(speedup=5.0), latency=(upper,)))
    assert stop_of(wanted, made) is None, "an upper bound"


@pytest.mark.parametrize(
    ("evaluation", "at_roof"),
    [
        (timed(case(0.96), case(0.2, mfu=0.97)), True),
        (timed(case(0.96), case(0.94)), False),
        (timed(case(0.96), case(0.1, short=True), case(0.1, at_least=True)), True),
        (timed(case(0.1, short=True)), True),
        (timed(*[case(0.96)] * 9, case(0.9)), False),
        (timed(*[case(0.96)] * 11, case(0.9)), True),
        (timed(case(0.96), not_timed=("b",)), False),
        (timed(case(0.96), case(None)), False),
        (timed(case(1.4, suspect="faster than memory")), False),
        (timed(), False),
    ],
)
def test_nothing_is_left_to_gain_if_the_speed_can_grow_by_less_than_what_ties(
    evaluation: Evaluation, *, at_roof: bool
) -> None:
    assert is_at_roof(evaluation) is at_roof


def test_room_counts_by_the_share_of_the_users_time() -> None:
    rare, often = case(0.5), msgspec.structs.replace(case(0.99), case="often")
    both = timed(rare, often)
    for share, at_roof in ((0.001, True), (0.1, False)):
        weights = {rare.case: share, "often": 1 - share}
        assert is_at_roof(msgspec.structs.replace(both, case_weights=weights)) is at_roof


def test_instance_whose_cases_are_all_too_short_ends() -> None:
    made = attempts(1.0)
    judge_again(made[0], timed(case(0.1, short=True)))
    stop = stop_of(StopRules(at_roof=True), made)
    assert stop is not None
    assert stop.reason is EndReason.AT_ROOF
    assert stop_of(StopRules(speedup=0.1, without_gain=1), made) is None


def test_rules_that_are_off_end_nothing() -> None:
    made = attempts(9.0, 1.0, 1.0, 1.0)
    judge_again(made[0], timed(case(0.99)))
    assert stop_of(StopRules(), made) is None
    assert stop_of(StopRules(at_roof=True), made) is not None


async def test_instance_ends_at_its_rule_and_says_why(home: Home) -> None:
    client = scripted_model("correct 1.0", "correct 2.5")
    wanted = StopRules(speedup=2.0, without_gain=2)
    events = await play(home, client, session_plan=plan(iterations=9, stop=wanted))
    assert endings(events) == ["speedup_reached"]
    state = fold(events)
    assert len(state.attempts()) == 2
    assert state.attempts()[1].exam is not None, "the winner is examined as always"
    narrator = Narrator()
    lines = [line for event in events for line in narrator.lines(event)]
    assert any(
        "ends: the wanted speedup is reached" in line
        and "vector_add#1/2 reached 2.50x, and 2x was wanted" in line
        for line in lines
    )


@pytest.mark.parametrize(("method", "expected"), [("geak", 3), ("geak-evolve", 6)])
async def test_instance_without_gain_ends_with_its_best_attempt(
    home: Home, method: str, expected: int
) -> None:
    client = scripted_model("correct 2.0", "correct 1.0")
    session_plan = plan(
        "20260101-000000-x-0000",
        method=method,
        iterations=40,
        stop=NO_GAIN,
        options=msgspec.structs.replace(plan().options, descendants=2),
    )
    events = await play(home, client, session_plan=session_plan)
    state = fold(events)
    assert endings(events) == ["no_gain"]
    assert len(state.attempts()) == expected
    assert state.instances["vector_add#1"].best == "vector_add#1/1"
    assert {attempt.verdict for attempt in state.attempts()} == {Verdict.CORRECT}
