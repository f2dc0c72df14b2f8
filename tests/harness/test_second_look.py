"""Protects the second look: which cases get it, that others may time before it, and what it adds to the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from harness.node.telemetry.samples import Watched
from harness.stages.timing.second_look import Look, plan_second_look
from harness.wire.clock_messages import BASELINE, CANDIDATE, Floor, Measure, Measured, ProcessTimes
from harness.wire.effort import ROUGH
from harness.wire.evaluation import ErrorReport, Verdict
from harness.wire.latency import Outcome
from tests.support.process_times import MEASURE, QUIET, process, times
from tests.support.scripted_clock import Pool, ScriptedClock, measure_with


def apart(*ratios: float, case: str = "fp32", first_pair: int = 0) -> tuple[ProcessTimes, ...]:
    """Pairs of processes; the baseline of each takes `ratio` milliseconds, the candidate one."""
    return tuple(
        process(side, pair, ms, case=case)
        for pair, ratio in enumerate(ratios, first_pair)
        for side, ms in ((BASELINE, ratio), (CANDIDATE, 1.0))
    )


WIDE = apart(0.9, 1.0, 1.1)
MORE = apart(0.99, 1.0, 1.01, first_pair=3)


def look(
    processes: Sequence[ProcessTimes], *, seconds: float = 0.0, left_out: int = 0, **changes: Any
) -> Look:
    measured = msgspec.structs.replace(Measured(times=tuple(processes), floor=None), **changes)
    dropped = Counter({("fp32", CANDIDATE): left_out} if left_out else {})
    return Look(measured, dropped, Watched(QUIET), None, None, seconds)


def test_only_unresolved_cases_get_a_second_look() -> None:
    narrow = times("fp32-ragged", baseline=1.0, candidate=0.5)
    planned = plan_second_look(MEASURE, look((*WIDE, *narrow)))
    assert planned is not None
    assert planned.unresolved == ("fp32",)
    assert plan_second_look(MEASURE, look(narrow)) is None


def test_second_look_has_the_rest_of_the_time_and_the_chosen_configs() -> None:
    tuned = [msgspec.structs.replace(timed, configs={"kernel": timed.side}) for timed in WIDE]
    planned = plan_second_look(MEASURE, look(tuned, seconds=0.25))
    assert planned is not None
    assert planned.budget_s == MEASURE.budget_s - 0.25
    assert planned.chosen == {side: {"fp32": {"kernel": side}} for side in (BASELINE, CANDIDATE)}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"seconds": MEASURE.budget_s}, "the time for timing is up"),
        ({"problem": "out of memory"}, "the first look failed"),
        ({"verdict": "wrong"}, "the candidate was refused"),
        ({"floor": Floor(empty_ms=0.5, copies=())}, "too short on both sides for a ratio"),
    ],
)
def test_no_second_look(changes: dict[str, Any], why: str) -> None:
    assert plan_second_look(MEASURE, look(WIDE, **changes)) is None, why


def test_rung_of_a_sweep_has_one_look() -> None:
    roughly = msgspec.structs.replace(MEASURE, effort=ROUGH[1])
    assert plan_second_look(roughly, look(apart(0.9, 1.1))) is None


def test_disturbed_case_is_looked_at_again() -> None:
    disturbed = plan_second_look(MEASURE, look(WIDE[:2], left_out=40))
    assert disturbed is not None
    assert disturbed.unresolved == ("fp32",)


async def two_looks(second: Measured) -> tuple[Any, Pool, list[Measure]]:
    """The timing when the first look is wide and the clock's answer to the second is `second`."""
    requests: list[Measure] = []

    async def script(clock: ScriptedClock, _pool: Pool) -> None:
        requests.append(await clock.reach_lease())
        await clock.send(Measured(times=WIDE, floor=None, confirmed_outputs=5, seconds={"samples": 1.0}))
        requests.append(await clock.reach_lease())
        await clock.send(second)

    pool = Pool()
    return await measure_with(script, pool), pool, requests


@pytest.mark.asyncio
async def test_lease_is_given_back_between_the_looks() -> None:
    timing, pool, requests = await two_looks(Measured(times=MORE, floor=None, seconds={"samples": 0.5}))
    assert [request.unresolved for request in requests] == [(), ("fp32",)]
    assert pool.watch.calls == ["begin", "end", "using", "begin", "end", "used"], "never without a lease"
    assert pool.server.alive == []
    (latency,) = timing.latency
    assert (latency.pairs, latency.outcome) == (6, Outcome.NOT_RESOLVED)
    facts = {fact.name: fact.value for fact in timing.facts}
    assert facts["outputs of timed calls compared with the oracle"] == "5"
    assert facts["time of timing"] == "samples 1.50 s"


@pytest.mark.asyncio
async def test_second_look_that_fails_leaves_the_first_with_a_note() -> None:
    timing, _, _ = await two_looks(Measured(times=MORE[:1], floor=None, problem="the device is full"))
    (latency,) = timing.latency
    assert (timing.verdict, latency.pairs) == (Verdict.CORRECT, 3)
    assert any("the device is full" in note for note in timing.notes)


@pytest.mark.asyncio
async def test_candidate_that_fails_in_the_second_look_is_refused() -> None:
    changed = ErrorReport(kind="input_changed", message="case fp32: input x was changed")
    timing, _, _ = await two_looks(Measured(times=(), floor=None, verdict="rejected", error=changed))
    assert (timing.verdict, timing.error, timing.latency) == (Verdict.REJECTED, changed, ())
